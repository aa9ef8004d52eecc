"""AGENTS.md from this machine's disk."""

from __future__ import annotations

import os
import stat
from pathlib import PurePath

import anyio.to_thread
from attrs import frozen

from punie.ports.path_guard import PathGuard
from punie.ports.project_notes import ProjectNotes

MAX_BYTES = 32_768
NAME = "AGENTS.md"


@frozen
class LocalProjectNotes(ProjectNotes):
    """Reads the file in the session's directory; a link that leads out of the roots counts as none."""

    guard: PathGuard
    cwd: str

    async def read(self) -> str | None:
        where = await self.guard.locate(str(PurePath(self.cwd) / NAME))
        if not where.inside:
            return None
        return await anyio.to_thread.run_sync(_read, where.path)


def _read(path: str) -> str | None:
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0)
    try:
        descriptor = os.open(path, flags)
    except OSError:
        return None
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)  # before fdopen, which refuses a folder with an error
        return None
    with os.fdopen(descriptor, "rb") as file:
        return file.read(MAX_BYTES).decode("utf-8", "ignore").strip() or None
