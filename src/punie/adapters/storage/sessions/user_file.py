"""Sessions in the user's own database."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import anyio
import anyio.to_thread
from attrs import define, field

from punie.adapters.storage.database import SESSION_INDEX, Database, UnusableDatabaseError, open_database
from punie.adapters.storage.sessions.sql_sessions import SqlSessions
from punie.adapters.storage.sql import Lane, Sql
from punie.domain.errors import SessionStoreError
from punie.ports.machine import Clock, ProcessTable
from punie.ports.sessions import SessionStore

T = TypeVar("T")


@define
class SessionFile(Lane):
    """Lives as long as the process; nothing is opened, or made, before it is needed.

    Whatever goes wrong is a `SessionStoreError` that says why, and the next use tries again on a new connection: a full
    disk has room again, a file is mended. Grants do not share it, for theirs closes the door for good (`StateFile`).
    """

    path: Path
    _database: Database | None = field(default=None, init=False)
    _opened_as: tuple[int, int] | None = field(default=None, init=False)
    _lock: threading.Lock = field(factory=threading.Lock, init=False)
    _one_at_a_time: anyio.CapacityLimiter = field(factory=lambda: anyio.CapacityLimiter(1), init=False)

    async def run(self, work: Callable[[Database], T]) -> T:
        """What the work gives, done in a thread to its end, cancelled or not. Raises `SessionStoreError`."""
        return await anyio.to_thread.run_sync(self._run_here, work, limiter=self._one_at_a_time, abandon_on_cancel=True)

    async def run_shielded(self, work: Callable[[Database], T]) -> T:
        """As `run`, and its caller has what it gives, cancelled or not: for what only the caller can give back."""
        return await anyio.to_thread.run_sync(self._run_here, work, limiter=self._one_at_a_time)

    async def read(self, work: Callable[[Database], T], nothing: T) -> T:
        """As `run`, but where there is no file yet it makes none: then there is nothing."""

        def reading() -> T:
            if not self.path.exists():
                return nothing
            return self._run_here(work)

        return await anyio.to_thread.run_sync(reading, limiter=self._one_at_a_time, abandon_on_cancel=True)

    def close(self) -> None:
        """Let go of the file; a later use opens it again."""
        with self._lock:
            self._let_go()

    def _run_here(self, work: Callable[[Database], T]) -> T:
        with self._lock:
            try:
                if self._database is None or _identity(self.path) != self._opened_as:
                    self._let_go()  # of a file that was moved or deleted: rows written there would be lost
                    self._database = self._opened()
                    self._opened_as = _identity(self.path)
                return work(self._database)
            except UnusableDatabaseError as error:
                self._let_go()
                raise SessionStoreError(f"{error} ({self.path})") from error

    def _opened(self) -> Database:
        database = open_database(self.path)
        try:
            database.run(SESSION_INDEX)  # changes nothing where it is there
            database.run("PRAGMA secure_delete = ON")  # of a deleted session not even the bytes stay
        except UnusableDatabaseError:
            database.close()
            raise
        return database

    def _let_go(self) -> None:
        database, self._database = self._database, None
        if database is not None:
            database.close()


def _identity(path: Path) -> tuple[int, int] | None:
    """Which file that is; None where there is none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


@define
class SqliteSessionStore(SqlSessions, SessionStore):
    """Shares the database at `path` with the other processes of its user; lives as long as the process."""

    path: Path
    log: logging.Logger
    processes: ProcessTable
    clock: Clock
    _file: SessionFile = field(init=False)
    _told: bool = field(default=False, init=False)

    def __attrs_post_init__(self) -> None:
        self._file = SessionFile(self.path)

    def close(self) -> None:
        """Let go of the file; a later use opens it again."""
        self._file.close()

    async def delete(self, session_id: str) -> bool:
        found = await super().delete(session_id)
        if found:
            # The journal has it still; where that is busy, it goes with the next one.
            await self._file.read(lambda database: database.run("PRAGMA wal_checkpoint(TRUNCATE)"), [])
        return found

    def _lane(self) -> SessionFile:
        return self._file

    def _now(self, database: Sql) -> float:
        return self.clock.epoch_s()
