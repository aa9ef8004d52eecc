"""The files of a session."""

from __future__ import annotations

from abc import abstractmethod
from typing import Protocol, runtime_checkable


@runtime_checkable
class Workspace(Protocol):
    """Reads and writes text files by absolute path; lives as long as the session.

    The paths handed in were located inside the session's roots; an adapter that touches this machine's disk checks
    again when it opens them. Served by the client, a read includes what the person has not saved yet.
    """

    @abstractmethod
    async def read_text(self, path: str, *, line_1based: int | None = None, limit_lines: int | None = None) -> str:
        """The text, whole or `limit_lines` lines from `line_1based` on. Raises `ToldToModel` with the reason."""
        ...

    @abstractmethod
    async def write_text(self, path: str, content: str) -> None:
        """Make the file hold exactly `content`; a missing parent folder is made. All or nothing.

        Raises `ToldToModel` with the reason.
        """
        ...
