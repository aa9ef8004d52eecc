"""Sessions on a PostgreSQL server, which many machines share."""

from __future__ import annotations

import logging
from typing import ClassVar, cast

from attrs import Factory, define, field

from punie.adapters.storage import postgres_schema
from punie.adapters.storage.postgres import PostgresDatabase, PostgresLane
from punie.adapters.storage.sessions.session_index import escaped
from punie.adapters.storage.sessions.sql_sessions import SqlSessions
from punie.adapters.storage.sql import Lane, Sql
from punie.domain.errors import SessionStoreError
from punie.domain.session.log import ProcessIdentity
from punie.ports.machine import ProcessTable
from punie.ports.sessions import SessionLease, SessionStore

PRIMARY = "Use the primary: `target_session_attrs=read-write` in the URL finds it among several hosts"


@define
class PostgresSessionStore(SqlSessions, SessionStore):
    """Sessions in the database at `url`, shared by its users; lives as long as the process."""

    leases_last: ClassVar[bool] = True

    url: str = field(repr=False)
    log: logging.Logger
    processes: ProcessTable
    _lane: Lane = field(default=Factory(lambda self: PostgresLane(self.url), takes_self=True), init=False)
    _told: bool = field(default=False, init=False)
    _given: dict[str, int] = field(factory=dict[str, int], init=False)
    """The tokens of the leases that sessions of this process hold."""

    _in_doubt: set[str] = field(factory=set[str], init=False)
    """Sessions that this process may hold without knowing, because the connection was lost meanwhile."""

    async def acquire(self, session_id: str) -> SessionLease:
        if session_id in self._in_doubt:
            await self._lane.run(lambda database: self._let_go_of(database, session_id))
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

    def _let_go_of(self, database: Sql, session_id: str) -> None:
        """Delete a lease of this process that no session of it knows: its token is a later one."""
        own = self.processes.own()
        whose = (escaped(own.machine), own.pid, own.started)
        where = "session_id = ? AND token > ? AND machine = ? AND pid = ? AND started = ?"
        values = (escaped(session_id), self._given.get(session_id, 0), *whose)
        database.run(f"DELETE FROM session_leases WHERE {where}", values)  # noqa: S608 - our own words

    def _has_tables(self, database: Sql) -> bool:
        ((read_only,),) = database.run("SELECT current_setting('transaction_read_only') = 'on'")
        if read_only:
            raise SessionStoreError("the database takes no changes: it is a standby, or read only", PRIMARY)
        return postgres_schema.is_ready(database)

    def _now(self, database: Sql) -> float:
        """The server's clock: those of the machines may differ by more than a lease lasts."""
        return cast("PostgresDatabase", database).now

    def _lives(self, process: ProcessIdentity) -> bool | None:
        """As in the process table; a machine of the same name that started at another time is another machine."""
        theirs, ours = _begins(process), _begins(self.processes.own())
        return None if theirs != ours else super()._lives(process)


def _begins(process: ProcessIdentity) -> str:
    """The id of the machine's start in which a process began; empty where the system does not tell."""
    machine, slash, _ = process.started.rpartition("/")
    return machine if slash else ""
