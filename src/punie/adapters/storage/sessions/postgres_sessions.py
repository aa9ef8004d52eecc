"""Sessions on a PostgreSQL server, which many machines share."""

from __future__ import annotations

import logging
from typing import ClassVar, cast

from attrs import define, field

from punie.adapters.storage.sessions.postgres import PostgresDatabase, PostgresLane
from punie.adapters.storage.sessions.session_index import escaped
from punie.adapters.storage.sessions.sql_sessions import SqlSessions
from punie.adapters.storage.sql import Sql
from punie.domain.errors import SessionStoreError
from punie.domain.session.log import ProcessIdentity
from punie.ports.machine import ProcessTable
from punie.ports.sessions import SessionLease, SessionStore


@define
class PostgresSessionStore(SqlSessions, SessionStore):
    """Shares the database at `url` with whoever else has it; lives as long as the process."""

    leases_last: ClassVar[bool] = True

    url: str = field(repr=False)
    log: logging.Logger
    processes: ProcessTable
    _server: PostgresLane = field(init=False)
    _told: bool = field(default=False, init=False)
    _given: dict[str, int] = field(factory=dict[str, int], init=False)
    """The tokens of the leases that somebody here has."""

    _in_doubt: set[str] = field(factory=set[str], init=False)
    """Sessions that this process may hold without having heard so: the connection was lost meanwhile."""

    def __attrs_post_init__(self) -> None:
        self._server = PostgresLane(self.url)

    async def acquire(self, session_id: str) -> SessionLease:
        if session_id in self._in_doubt:
            await self._server.run(lambda database: self._let_go_of(database, session_id))
            self._in_doubt.discard(session_id)
        try:
            lease = await super().acquire(session_id)
        except SessionStoreError:
            self._in_doubt.add(session_id)
            raise
        self._given[session_id] = lease.token
        return lease

    async def release(self, lease: SessionLease) -> None:
        if self._given.get(lease.session_id) == lease.token:
            del self._given[lease.session_id]
        await super().release(lease)

    def close(self) -> None:
        """Let go of the connections; a later use connects again."""
        self._server.close()

    def _lane(self) -> PostgresLane:
        return self._server

    def _let_go_of(self, database: Sql, session_id: str) -> None:
        """Give back a lease of this process that no session here has: its token is a later one."""
        own = self.processes.own()
        whose = (escaped(own.machine), own.pid, own.started)
        where = "session_id = ? AND token > ? AND machine = ? AND pid = ? AND started = ?"
        values = (escaped(session_id), self._given.get(session_id, 0), *whose)
        database.run(f"DELETE FROM session_leases WHERE {where}", values)  # noqa: S608 - our own words

    def _now(self, database: Sql) -> float:
        """The machines' own clocks may differ by more than a lease lasts."""
        return cast("PostgresDatabase", database).now

    def _lives(self, process: ProcessIdentity) -> bool | None:
        """Machines of one name are common among servers: one that began at another time is another machine."""
        theirs, ours = _begins(process), _begins(self.processes.own())
        return None if theirs != ours else super()._lives(process)


def _begins(process: ProcessIdentity) -> str:
    """Which start of its machine a process belongs to, where the system tells that; empty where not."""
    machine, slash, _ = process.started.rpartition("/")
    return machine if slash else ""
