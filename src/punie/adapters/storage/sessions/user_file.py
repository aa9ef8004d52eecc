"""Sessions in the user's own database."""

from __future__ import annotations

import logging
from pathlib import Path

from attrs import define, field

from punie.adapters.storage.sessions.session_file import SessionFile
from punie.adapters.storage.sessions.sql_sessions import SqlSessions
from punie.adapters.storage.sql import Sql
from punie.ports.machine import Clock, ProcessTable
from punie.ports.sessions import SessionStore


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
