"""Results too long for the model, kept where it can read them piece by piece."""

from __future__ import annotations

from abc import abstractmethod
from typing import Protocol, runtime_checkable


@runtime_checkable
class OutputStore(Protocol):
    """Keeps texts of one session in files that only this user can read; they go with the session."""

    @abstractmethod
    async def keep(self, name: str, text: str) -> str | None:
        """Write the text into a file of its own and give its absolute path, links followed; None where it cannot.

        Never raises. The oldest texts go when there are too many. Of a text that is too long for a file its beginning
        and its end are kept, and the file says so.
        """
        ...

    @abstractmethod
    async def beginning(self, path: str, limit_bytes: int) -> str | None:
        """The first bytes of a file of this store, as text; None where it is none, or gone. Never raises."""
        ...

    @abstractmethod
    def holds(self, path: str) -> bool:
        """Whether that absolute path, links followed, is a file of this store."""
        ...
