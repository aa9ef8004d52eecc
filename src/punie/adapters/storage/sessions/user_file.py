"""Sessions in the user's own database."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar, cast

from attrs import Factory, define, field

from punie.adapters.storage.database import Database, UnusableDatabaseError, has_tables, open_database
from punie.adapters.storage.sessions.sql_sessions import SqlSessions
from punie.adapters.storage.sql import Lane, Sql
from punie.adapters.storage.state_file import FileLane
from punie.domain.errors import SessionStoreError
from punie.ports.machine import Clock, ProcessTable
from punie.ports.sessions import SessionStore

T = TypeVar("T")


@define
class SessionFile(FileLane):
    """The connection for sessions; lives as long as the process.

    Any failure is a `SessionStoreError` that says why, and the next use tries again on a new connection: a full disk
    has room again, a file is mended. Decisions do not share it, because an unusable `StateFile` stays unusable.
    """

    _opened_as: tuple[int, int] | None = field(default=None, init=False)

    def run_here(self, work: Callable[[Database], T]) -> T:
        """Do the work in this thread. Raises `SessionStoreError`."""
        with self._lock:
            try:
                if self._database is None or _identity(self.path) != self._opened_as:
                    self._let_go()  # of a file that was moved or deleted: rows written there would be lost
                    self._database = open_database(self.path)
                    self._opened_as = _identity(self.path)
                return work(self._database)
            except UnusableDatabaseError as error:
                self._let_go()
                raise SessionStoreError(f"{error} ({self.path})") from error

    def _is_unused(self) -> bool:
        return not self.path.exists()


def _identity(path: Path) -> tuple[int, int] | None:
    """Device and inode of the file; None where there is none."""
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
    _lane: Lane = field(default=Factory(lambda self: SessionFile(self.path), takes_self=True), init=False)
    _told: bool = field(default=False, init=False)

    async def delete(self, session_id: str) -> bool:
        found = await super().delete(session_id)
        if found:
            # The journal still has the rows; where the database is busy, the next deletion empties it.
            await self._lane.read(lambda database: database.run("PRAGMA wal_checkpoint(TRUNCATE)"), [])
        return found

    def _has_tables(self, database: Sql) -> bool:
        return has_tables(cast("Database", database))

    def _now(self, database: Sql) -> float:
        return self.clock.epoch_s()
