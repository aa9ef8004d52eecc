"""What a project tells agents about itself."""

from __future__ import annotations

from abc import abstractmethod
from typing import Protocol, runtime_checkable


@runtime_checkable
class ProjectNotes(Protocol):
    """The project's AGENTS.md; lives as long as the session. It is configuration, read without a tool call."""

    @abstractmethod
    async def read(self) -> str | None:
        """The text, at most 32 KiB of it; None where there is none, or it leads out of the session's directories."""
        ...
