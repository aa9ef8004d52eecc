"""The processes of this machine."""

from __future__ import annotations

from abc import abstractmethod
from typing import Protocol, runtime_checkable

from punie.domain.session_lease import ProcessIdentity


@runtime_checkable
class ProcessTable(Protocol):
    """Tells whether a process still lives; lives as long as the process that asks. Nothing here raises or waits."""

    @abstractmethod
    def own(self) -> ProcessIdentity:
        """The process that asks."""
        ...

    @abstractmethod
    def lives(self, process: ProcessIdentity) -> bool | None:
        """Whether that process, and not a later one of its number, lives; None where this machine cannot know."""
        ...
