"""What the stores of sessions need of an SQL database, whichever it is."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol, TypeAlias, TypeVar

Row: TypeAlias = tuple[Any, ...]
T = TypeVar("T")


class Sql(Protocol):
    """One connection, in the thread that has it for now. Statements have `?` where a value goes."""

    @abstractmethod
    def run(self, statement: str, values: Sequence[object] = ()) -> list[Row]:
        """Run one statement; gives its rows."""
        ...

    @abstractmethod
    def transaction(self, *, of: str | None = None, lasting: bool = False) -> AbstractContextManager[None]:
        """All of the block's statements or none, while the other writers of the session `of` wait; all without one.

        With `lasting` it is on the disk when it is over, also if the power fails.
        """
        ...


class Lane(Protocol):
    """Where the work with such a database is done: in a thread, one piece in a transaction of its own or none."""

    @abstractmethod
    async def run(self, work: Callable[[Any], T]) -> T:
        """What the work gives, done to its end, cancelled or not. Raises `SessionStoreError`."""
        ...

    @abstractmethod
    async def run_shielded(self, work: Callable[[Any], T]) -> T:
        """As `run`, and its caller has what it gives, cancelled or not: for what only the caller can give back."""
        ...

    @abstractmethod
    async def read(self, work: Callable[[Any], T], nothing: T) -> T:
        """As `run`; `nothing` where nothing was ever kept."""
        ...
