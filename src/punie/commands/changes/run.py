"""`punie changes`: what the turns of a session changed, file by file, for a person, a program or `git apply`."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import Path

import anyio
from attrs import define

from punie.adapters.local.files.file_history import LocalFileHistory, history_folder
from punie.application.sessions.changed_files import (
    ChangedFile,
    changed_files,
    content_of,
    net_changes,
    turns_of,
)
from punie.bootstrap.settings.files import state_dir
from punie.commands.running import Exit, command_environ, directory_of, told, wrong
from punie.commands.sessions.run import LAST, both_names, command_store, found_session, last_session, sessions_of
from punie.domain.session.log import SessionSummary
from punie.domain.values.display import display_exact
from punie.domain.values.paths import is_inside, shown_path
from punie.mechanics.git_patch import file_patch
from punie.ports.sessions import SessionStore

_SIGNS: Mapping[str, str] = {"created": "A", "modified": "M", "deleted": "D"}


@define
class ChangesMode:
    """One run of the command; each method returns the exit code, and raises `PunieError` where the store fails."""

    store: SessionStore
    session: SessionSummary
    history: LocalFileHistory
    turns: Sequence[str]

    async def list(self, turn: int | None, *, as_json: bool) -> int:
        """Print the changed files, turn by turn."""
        found = await changed_files(self.history, self.turns, turn)
        text = self._listed(found) if found else "Nothing was changed, as far as it is known.\n"
        return told([row_object(row) for row in found], text, as_json=as_json)

    async def patch(self, turn: int | None) -> int:
        """Print one patch of all files, relative to the top of the repository; what has no place in it to stderr."""
        top = _top(self.session.cwd)
        exit_code: int = Exit.DONE
        out = sys.stdout.buffer
        for path, keys in sorted((await net_changes(self.history, self.turns, turn)).items()):
            was, left = [await self.history.version(key) for key in keys]
            if was is None or left is None:
                reason = "its contents were not kept: it is too large, a folder or a device"
            elif not is_inside(path, (top,)):
                reason = f"it is not below {top}"
            else:
                out.write(file_patch(shown_path(path, top), content_of(was), content_of(left)))
                continue
            exit_code = wrong(f"{display_exact(path)} is not in the patch: {display_exact(reason)}.", Exit.FAILED)
        out.flush()
        return exit_code

    def _listed(self, found: Sequence[ChangedFile]) -> str:
        lines: list[str] = []
        for turn, rows in groupby(found, key=lambda row: row.turn):
            lines.append(f"Turn {turn}" if turn else "Turn not known")
            lines += [f"  {row_text(row, self.session.cwd)}" for row in rows]
        return "\n".join(lines) + "\n"


def row_object(row: ChangedFile) -> dict[str, object]:
    """A change as programs read it."""
    return {
        "turn": row.turn, "path": row.path, "change": row.change, "by": row.by, "tool": row.tool,
        "added": row.added, "removed": row.removed,
    }  # fmt: skip


def row_text(row: ChangedFile, cwd: str) -> str:
    """A change on one line, safe to show."""
    path = shown_path(row.path, cwd)
    lines = "" if row.added is None else f"  +{row.added} -{row.removed}"
    by = row.by if not row.tool else f"{row.by} {row.tool}"
    return f"{_SIGNS[row.change]} {shown_name(path)}{lines}  ({display_exact(by)})"


def shown_name(path: str) -> str:
    """A path on one line: every character that a person would not see as itself is written out."""
    return display_exact(path).replace("\n", "<U+000A>").replace("\t", "<U+0009>")


def _top(cwd: str) -> str:
    """The top of the repository around a directory; the directory itself where there is none."""
    here = Path(cwd)
    return str(next((folder for folder in (here, *here.parents) if (folder / ".git").exists()), here))


async def chosen_session(store: SessionStore, given: str | None, cwd: str) -> SessionSummary | None:
    """The session that was named, or the last one of the directory; None after a line on stderr."""
    if given is not None:
        return await (last_session(store) if given == LAST else found_session(store, given))
    found = [summary for name in both_names(cwd) async for summary in sessions_of(store, name) if summary.turns]
    if found:
        return max(found, key=lambda summary: summary.updated_at)
    wrong(f"no session of {display_exact(cwd)} is stored. Name another one, or its directory with --cwd.")
    return None


async def _changes(
    store: SessionStore, given: str | None, turn: int | None, cwd: str, *, patch: bool, as_json: bool
) -> int:
    session = await chosen_session(store, given, cwd)
    if session is None:
        return Exit.FAILED
    turns = await turns_of(store, session.id)
    if turn is not None and not 1 <= turn <= len(turns):
        return wrong(f"there is no turn {turn}: the session has {len(turns)}.")
    history = LocalFileHistory(history_folder(str(state_dir(command_environ())), session.id))
    mode = ChangesMode(store, session, history, turns)
    return await (mode.patch(turn) if patch else mode.list(turn, as_json=as_json))


def run_changes(*, given: str | None, turn: int | None, patch: bool, as_json: bool, cwd: str) -> int:
    """Print the changes of a session; returns the exit code."""
    if patch and as_json:
        return wrong("--patch and --json exclude each other.")
    directory_of(cwd)
    store = command_store()
    try:
        return anyio.run(lambda: _changes(store, given, turn, cwd, patch=patch, as_json=as_json))
    finally:
        store.close()
