"""The database as grants, pins and the audit trail use it: one connection, one statement after the other."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TypeVar

import anyio
import anyio.to_thread
from attrs import define, field

from punie.adapters.storage.database import Database, DatabaseBusyError, UnusableDatabaseError, open_database

T = TypeVar("T")


@define
class StateFile:
    """Shared by what writes there; lives as long as the process. Nothing is opened, or made, before it is needed.

    Once the file has turned out unusable it stays so: `trouble` says why, the log has said so once, and every further
    use raises `UnusableDatabaseError` at once. Another process that writes for long is no such trouble. `hindered`
    says that anything went wrong so far.
    """

    path: Path
    log: logging.Logger
    trouble: str | None = field(default=None, init=False)
    hindered: bool = field(default=False, init=False)
    _database: Database | None = field(default=None, init=False)
    _lock: threading.Lock = field(factory=threading.Lock, init=False)
    _one_at_a_time: anyio.CapacityLimiter = field(factory=lambda: anyio.CapacityLimiter(1), init=False)

    async def run(self, work: Callable[[Database], T]) -> T:
        """What the work gives, done in a thread to its end, cancelled or not. Raises `UnusableDatabaseError`."""
        return await anyio.to_thread.run_sync(self.run_here, work, limiter=self._one_at_a_time, abandon_on_cancel=True)

    async def read(self, work: Callable[[Database], T], nothing: T) -> T:
        """As `run`, but where there is no file yet it makes none: then there is nothing."""

        def reading() -> T:
            if self._database is None and self.trouble is None and not self.path.exists():
                return nothing
            return self.run_here(work)

        return await anyio.to_thread.run_sync(reading, limiter=self._one_at_a_time, abandon_on_cancel=True)

    async def looked_up(self, work: Callable[[Database], T], nothing: T) -> T:
        """As `read`; where the file cannot be used there is nothing either."""
        try:
            return await self.read(work, nothing)
        except UnusableDatabaseError:
            return nothing

    async def done(self, work: Callable[[Database], object]) -> bool:
        """As `run`, for work that gives nothing: whether it could be done."""
        try:
            await self.run(work)
        except UnusableDatabaseError:
            return False
        return True

    def run_here(self, work: Callable[[Database], T]) -> T:
        """As `run`, in this thread."""
        with self._lock:
            if self.trouble is not None:
                raise UnusableDatabaseError(self.trouble)
            try:
                if self._database is None:
                    self._database = open_database(self.path)
                return work(self._database)
            except DatabaseBusyError as error:
                self.hindered = True
                self.log.warning("permissions: %s is busy: %s", self.path, error)
                raise
            except UnusableDatabaseError as error:
                self._fail(str(error))
                raise
            except ValueError as error:  # text that is none: half a pair of UTF-16, a name that is not UTF-8
                raise UnusableDatabaseError("it cannot hold that text") from error

    def close(self) -> None:
        """Let go of the file; a later use opens it again."""
        with self._lock:
            database, self._database = self._database, None
            if database is not None:
                database.close()

    def _fail(self, reason: str) -> None:
        self.trouble, self.hindered = reason, True
        self.log.warning(
            "permissions: %s cannot be used: %s. Nothing is granted beyond its session, what was granted before asks "
            "again, and decisions are written down in memory only; mend or move the file and start again.",
            self.path, reason,
        )  # fmt: skip


def for_good(database: Database) -> AbstractContextManager[None]:
    """A transaction that is on the disk when it is over, also if the power fails."""
    return database.transaction(lasting=True)
