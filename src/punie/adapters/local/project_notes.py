"""AGENTS.md from this machine's disk, the nearest one last."""

from __future__ import annotations

import logging
import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path, PurePath

import anyio.to_thread
from attrs import frozen

from punie.adapters.local.files.path_guard import resolve
from punie.domain.values.paths import is_inside
from punie.ports.workspace import PathGuard, ProjectNotes

_log = logging.getLogger("punie.project")

MAX_BYTES = 32_768
NAME = "AGENTS.md"
LEVELS = 40
"""Folders above the session's that are looked at for a repository."""

SEVERAL = "There are several. Where they disagree, the later one holds."


CUT = "The project's AGENTS.md is too long"
CUT_DETAILS = "The model is told 32 KiB, the nearest file first. What is beyond that in {paths} it does not know."


def _unheard(_title: str, _details: str) -> None:
    """Do nothing with it."""


@frozen
class _Note:
    path: str
    text: str
    is_cut: bool


@frozen
class LocalProjectNotes(ProjectNotes):
    """Reads the file in the session's directory, and what stands above it and beside it.

    Above are the directories up to the repository's own; beside are the session's other directories. All of them
    together have the limit of one, the nearest taking its part first. A link that leads out of the roots, or out of the
    repository, counts as none. What is beyond the limit is said to `warn` and to the log.
    """

    guard: PathGuard
    cwd: str
    others: tuple[str, ...] = ()
    warn: Callable[[str, str], None] = _unheard

    async def read(self) -> str | None:
        near = [await self._inside(directory) for directory in (*self.others, self.cwd)]
        notes = await anyio.to_thread.run_sync(_found, self.cwd, near)
        cut = ", ".join(note.path for note in notes if note.is_cut)
        if cut:
            details = CUT_DETAILS.format(paths=cut)
            _log.warning("%s: %s", CUT, details)
            self.warn(CUT, details)
        return _told([note for note in notes if note.text])

    async def _inside(self, directory: str) -> str | None:
        where = await self.guard.locate(str(PurePath(directory) / NAME))
        return where.path if where.inside else None


def _found(cwd: str, near: list[str | None]) -> list[_Note]:
    """What there is, the nearest first."""
    paths = [*_above(cwd), *(path for path in near if path is not None)]
    found: list[_Note] = []
    left = MAX_BYTES
    for path in dict.fromkeys(reversed(paths)):
        note = _read(path, left)
        if note is not None:
            found.append(note)
            left -= len(note.text.encode())
    return found


def _told(notes: list[_Note]) -> str | None:
    """The texts, the farthest first; the path stands above each where there are several."""
    if len(notes) < 2:
        return notes[0].text if notes else None
    return "\n\n".join((SEVERAL, *(f"From {note.path}:\n\n{note.text}" for note in reversed(notes))))


def _above(cwd: str) -> Iterator[str]:
    """Where the notes of the directories above would be, the repository's own first.

    Only where one of them is a repository of the same owner as the session's directory: in a place that others may
    write to, anybody could have put one.
    """
    here = resolve(cwd)
    if here is None or os.path.lexists(PurePath(here) / ".git"):
        return
    owner = _owner(here)
    above: list[str] = []
    for folder in list(Path(here).parents)[:LEVELS]:
        if owner is None or _owner(str(folder)) != owner or folder == Path(folder.anchor):
            return
        above.append(str(folder))
        if os.path.lexists(folder / ".git"):
            break
        if folder == Path.home():
            return
    else:
        return
    root = above[-1]
    for directory in reversed(above):
        found = resolve(str(PurePath(directory) / NAME))
        if found is not None and is_inside(found, (root,)) and _owner(found) == owner:
            yield found


def _owner(path: str) -> int | None:
    try:
        return os.lstat(path).st_uid
    except OSError:
        return None


def _read(path: str, limit: int) -> _Note | None:
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0)
    try:
        descriptor = os.open(path, flags)
    except OSError:
        return None
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)  # before fdopen, which refuses a folder with an error
        return None
    with os.fdopen(descriptor, "rb") as file:
        read = file.read(limit + 1)
    text = read[:limit].decode("utf-8", "ignore").strip()
    return _Note(path, text, is_cut=len(read) > limit)
