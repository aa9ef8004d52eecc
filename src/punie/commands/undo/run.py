"""`punie undo`: shows what would be taken back, asks, and takes it back."""

from __future__ import annotations

import json
import os
import sys
import tempfile
import uuid
from collections.abc import Sequence
from pathlib import Path

import anyio
import anyio.to_thread

from punie.adapters.git.repository import DulwichRepository
from punie.adapters.local.files.file_history import LocalFileHistory, history_folder
from punie.adapters.local.files.private_folder import remove_abandoned
from punie.application.sessions.changed_files import turns_of
from punie.application.sessions.rewinding import (
    NOT_TAKEN_BACK,
    RewindPlan,
    carry_out,
    committed_already,
    kept_lines,
    plan_object,
    plan_text,
    planned,
)
from punie.application.tools.files.tree_watch import TreeWatch
from punie.bootstrap.settings.files import state_dir
from punie.commands.changes.run import chosen_session
from punie.commands.running import Exit, command_environ, confirm, directory_of, wrong
from punie.commands.sessions.run import command_store
from punie.domain.session.log import SessionSummary
from punie.ports.sessions import SessionStore


async def _undo(
    store: SessionStore,
    given: str | None,
    turn: int | None,
    paths: Sequence[str],
    cwd: str,
    *,
    yes: bool,
    as_json: bool,
) -> int:
    session = await chosen_session(store, given, cwd)
    if session is None:
        return Exit.FAILED
    lease = await store.acquire(session.id)  # refuses, with the holder, where another process has the session open
    try:
        return await _taken_back(store, session, turn, paths, yes=yes, as_json=as_json)
    finally:
        await store.release(lease)


async def _taken_back(
    store: SessionStore, session: SessionSummary, turn: int | None, paths: Sequence[str], *, yes: bool, as_json: bool
) -> int:
    history = LocalFileHistory(history_folder(str(state_dir(command_environ())), session.id))
    await anyio.to_thread.run_sync(lambda: remove_abandoned(os.path.realpath(tempfile.gettempdir())))
    await history.recover(committed_already)
    roots = (session.cwd, *session.additional_directories)
    await TreeWatch(history, DulwichRepository(session.cwd, roots)).settle()
    turns = await turns_of(store, session.id)
    number = len(turns) if turn is None else turn
    if not 1 <= number <= len(turns):
        return wrong(f"there is no turn {number}: the session has {len(turns)}.")
    plan = await planned(history, turns[number - 1 :], _named(paths, session.cwd))
    if not plan.back:
        return _told(plan, number, session.cwd, as_json=as_json)
    shown = f"{plan_text(plan, number, session.cwd)}\n{NOT_TAKEN_BACK}\n"
    confirm(shown, "Take this back?", yes=yes, as_json=as_json, to="take it back")
    done = await carry_out(history, plan, f"undo-{uuid.uuid4().hex}")
    return _told(done, number, session.cwd, as_json=as_json)


def _named(paths: Sequence[str], cwd: str) -> list[str]:
    """The absolute paths, without following a link at the end."""
    return [str(Path(os.path.realpath(Path(cwd, path).parent), Path(path).name)) for path in paths]


def _told(plan: RewindPlan, number: int, cwd: str, *, as_json: bool) -> int:
    """Print the end; returns the exit code, which is not 0 where a file stays as it is."""
    files = len(plan.files)
    if as_json:
        sys.stdout.write(json.dumps(plan_object(plan, number)) + "\n")
    elif plan.back:
        kept = "".join(f"  {line}\n" for line in kept_lines(plan, cwd))
        done = f"Taken back: {files} {'file' if files == 1 else 'files'}, to before turn {number}."
        sys.stdout.write(f"{done}\n{kept}")
    else:
        sys.stdout.write(plan_text(plan, number, cwd) + "\n")
    return Exit.FAILED if plan.kept else Exit.DONE


def run_undo(*, given: str | None, turn: int | None, paths: Sequence[str], yes: bool, as_json: bool, cwd: str) -> int:
    """Take back what the turns of a session changed; returns the exit code."""
    directory_of(cwd)
    store = command_store()
    try:
        return anyio.run(lambda: _undo(store, given, turn, paths, cwd, yes=yes, as_json=as_json))
    finally:
        store.close()
