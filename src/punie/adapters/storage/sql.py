"""An SQL database as the stores use it: its statements, and the threads in which work with it is done."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol, TypeAlias, TypeVar

import anyio
import anyio.to_thread

Row: TypeAlias = tuple[Any, ...]
T = TypeVar("T")


class Sql(Protocol):
    """One connection, used by one thread at a time. Statements have `?` where a value goes."""

    @abstractmethod
    def run(self, statement: str, values: Sequence[object] = ()) -> list[Row]:
        """Run one statement and return its rows."""
        ...

    @abstractmethod
    def transaction(self, *, of: str | None = None, lasting: bool = False) -> AbstractContextManager[None]:
        """All of the block's statements or none, while other writers of the session `of` wait; all writers without one.

        With `lasting` the changes are on the disk when the block ends, also if the power fails.
        """
        ...


class Lane(ABC):
    """Threads for the work with one database; lives as long as the process.

    The work is done to its end, cancelled or not. `run_here` says which errors a lane raises.
    """

    _limiter: anyio.CapacityLimiter

    @abstractmethod
    def run_here(self, work: Callable[[Any], T]) -> T:
        """Do the work in this thread and return its result."""
        ...

    @abstractmethod
    def close(self) -> None:
        """Close the connections that are not in use; a later use opens them again."""
        ...

    def _is_unused(self) -> bool:
        """Whether nothing was ever kept, so that there is nothing to read."""
        return False

    async def run(self, work: Callable[[Any], T]) -> T:
        """Do the work in a thread and return its result."""
        return await anyio.to_thread.run_sync(self.run_here, work, limiter=self._limiter, abandon_on_cancel=True)

    async def run_shielded(self, work: Callable[[Any], T]) -> T:
        """As `run`, but a cancelled caller receives the result too: only it can release the lease that it got."""
        return await anyio.to_thread.run_sync(self.run_here, work, limiter=self._limiter)

    async def read(self, work: Callable[[Any], T], nothing: T) -> T:
        """As `run`; return `nothing` where nothing was ever kept, and make no file for it."""

        def reading() -> T:
            return nothing if self._is_unused() else self.run_here(work)

        return await anyio.to_thread.run_sync(reading, limiter=self._limiter, abandon_on_cancel=True)
