"""Sessions on a PostgreSQL server, which many machines share."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, ClassVar, Self, TypeVar, cast
from urllib.parse import unquote, urlsplit

import anyio
import psycopg
from attrs import Factory, define, field
from psycopg.abc import PQGen
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from punie.adapters.storage.sessions import postgres_schema
from punie.adapters.storage.sessions.session_index import escaped
from punie.adapters.storage.sessions.sql_sessions import SqlSessions
from punie.adapters.storage.sql import Lane, Row, Sql
from punie.domain.errors import SessionStoreError
from punie.domain.session.log import ProcessIdentity
from punie.ports.machine import ProcessTable
from punie.ports.sessions import SessionLease, SessionStore

T = TypeVar("T")
RV = TypeVar("RV")

CONNECTIONS = 4
"""Connections of one process; further work waits for one."""

CONNECT_LIMIT_S = 5
STATEMENT_LIMIT_MS = 15_000
LOCK_LIMIT_MS = 5_000
IDLE_LIMIT_MS = 30_000
"""How long the server keeps a transaction open in which nothing happens, because its process is gone."""

QUEUE_LIMIT_S = 20.0
ANSWER_LIMIT_S = 20.0
"""How long one answer may take, whether the server keeps its own limits or not."""

LATE = ("wait timeout expired", "it does not answer")
"""The library's message for an answer that takes too long, and ours."""

DEFAULTS = {
    "connect_timeout": CONNECT_LIMIT_S, "application_name": "punie", "client_encoding": "utf8",
    "keepalives_idle": 10, "keepalives_interval": 5, "keepalives_count": 3, "tcp_user_timeout": 20_000,
}  # fmt: skip
"""Parameters of the connection that the URL does not set. A silent machine is noticed within half a minute."""

BEGIN = f"""
    SELECT extract(epoch FROM clock_timestamp())::double precision,
        set_config('search_path', '{postgres_schema.SCHEMA}', true),
        set_config('statement_timeout', '{STATEMENT_LIMIT_MS}', true),
        set_config('lock_timeout', '{LOCK_LIMIT_MS}', true),
        set_config('idle_in_transaction_session_timeout', '{IDLE_LIMIT_MS}', true),
        set_config('enable_bitmapscan', 'off', true)
    """  # noqa: S608 - our own words
"""The first statement of every transaction; returns the server's time. Its settings end with the transaction, so that a
pooler may be in between.

Bitmap scans are off because every query follows an index in its order: a bitmap, which the server prefers while it has
no statistics, would read a whole log for one page of it.
"""

SOON = "SELECT set_config('synchronous_commit', 'off', true)"
LASTING = """
    SELECT set_config('synchronous_commit', CASE current_setting('synchronous_commit')
        WHEN 'off' THEN 'on' ELSE current_setting('synchronous_commit') END, true)
    """
ONE_AT_A_TIME = ", pg_advisory_xact_lock(hashtextextended(?, 0))"
NOBODY_ELSE = "LOCK TABLE sessions IN SHARE ROW EXCLUSIVE MODE"

ADVICE = "See that it runs, is reached from here and lets this user in"


class _Connection(psycopg.Connection[Row]):
    """Bounds every wait for an answer: a server that hangs keeps none of its own limits."""

    def wait(self, gen: PQGen[RV], interval: float = 0.1, timeout: float | None = None) -> RV:
        return super().wait(gen, interval, ANSWER_LIMIT_S if timeout is None else timeout)


@define
class PostgresDatabase(Sql):
    """One connection in one transaction; lives until `close`. `now` is the time of the server at its begin.

    Methods raise `psycopg.Error`.
    """

    connection: psycopg.Connection[Row]
    now: float = field(default=0.0, init=False)

    @classmethod
    def connect(cls, conninfo: str) -> Self:
        """Connect; transactions see the changes that others commit meanwhile."""
        connection = _Connection.connect(conninfo, prepare_threshold=None)
        connection.isolation_level = psycopg.IsolationLevel.READ_COMMITTED
        return cls(connection)

    def begin(self) -> None:
        """Begin a transaction."""
        ((self.now, *_),) = self.run(BEGIN)

    def run(self, statement: str, values: Sequence[object] = ()) -> list[Row]:
        """As `Sql.run`. More than one statement may be run without values."""
        # Our statements are ASCII, have no percent sign, and `?` only for values; without values the text is kept.
        cursor = self.connection.execute(statement.replace("?", "%s").encode("ascii"), values or None)
        return cursor.fetchall() if cursor.description is not None else []

    @contextmanager
    def transaction(self, *, of: str | None = None, lasting: bool = False) -> Generator[None]:
        """As `Sql.transaction`, within the transaction of the work, which ends later."""
        durability = LASTING if lasting else SOON
        if of is None:
            self.run(durability)
            self.run(NOBODY_ELSE)
        else:
            self.run(durability + ONE_AT_A_TIME, (of,))
        yield

    @property
    def waits(self) -> bool:
        """Whether an answer of the server is outstanding."""
        return self.connection.info.transaction_status == psycopg.pq.TransactionStatus.ACTIVE

    def close(self) -> None:
        """Close the connection, whatever state it is in."""
        with suppress(psycopg.Error):
            self.connection.close()


@define
class PostgresLane(Lane):
    """A few connections to one server; lives as long as the process. Nothing is connected before it is needed.

    Any failure is a `SessionStoreError` that says why, and the next use tries again, on a new connection where the old
    one is lost.
    """

    url: str = field(repr=False)
    _idle: list[PostgresDatabase] = field(factory=list[PostgresDatabase], init=False)
    _free: threading.BoundedSemaphore = field(factory=lambda: threading.BoundedSemaphore(CONNECTIONS), init=False)
    _limiter: anyio.CapacityLimiter = field(factory=lambda: anyio.CapacityLimiter(CONNECTIONS), init=False)

    def close(self) -> None:
        while self._idle:
            self._idle.pop().close()

    @property
    def place(self) -> str:
        """The server and the database in words, without the secrets of the URL."""
        parts = urlsplit(self.url)
        return f"PostgreSQL at {parts.netloc.rpartition('@')[2] or 'its socket'}{parts.path}"

    def run_here(self, work: Callable[[PostgresDatabase], T]) -> T:
        """Do the work on a connection of this thread. Raises `SessionStoreError`."""
        # Work whose caller was cancelled goes on, which the limiter of the threads does not count.
        if not self._free.acquire(timeout=QUEUE_LIMIT_S):
            raise SessionStoreError(f"{self.place} is slow: all {CONNECTIONS} connections have been busy", ADVICE)
        try:
            return self._done(self._begun(), work)
        except psycopg.Error as error:
            raise SessionStoreError(f"{self.place}: {self._in_words(error)}", ADVICE) from None
        finally:
            self._free.release()

    def _begun(self) -> PostgresDatabase:
        """A connection in a transaction; lost ones among the idle are replaced."""
        while self._idle:
            with suppress(IndexError):  # another thread was faster
                database = self._idle.pop()
                try:
                    database.begin()
                    return database
                except psycopg.Error:
                    database.close()
        database = PostgresDatabase.connect(self._conninfo())
        try:
            database.begin()
            if not postgres_schema.is_ready(database):
                postgres_schema.make_ready(database)
                database.connection.commit()
                database.begin()
        except BaseException:
            database.close()
            raise
        return database

    def _done(self, database: PostgresDatabase, work: Callable[[PostgresDatabase], T]) -> T:
        """Do the work and commit it, or undo all of it."""
        try:
            done = work(database)
            database.connection.commit()
            return done
        except BaseException:
            if database.waits:
                database.close()  # the outstanding answer would be taken for that to the next question
            else:
                with suppress(psycopg.Error):
                    database.connection.rollback()
            raise
        finally:
            if database.connection.closed:
                database.close()
            else:
                self._idle.append(database)

    def _conninfo(self) -> str:
        try:
            given = conninfo_to_dict(self.url)
            return make_conninfo("", **(DEFAULTS | given))
        except (psycopg.Error, ValueError):  # its message would quote the URL
            raise SessionStoreError("the URL of `sessions.store` is none that PostgreSQL reads", "Correct it") from None

    def _in_words(self, error: psycopg.Error) -> str:
        """The message of the server or the library, in one line and without the password."""
        told = error.diag.message_primary or " ".join(str(error).split()).replace(*LATE)
        for secret in _secrets(self.url):
            told = told.replace(secret, "***")
        return told.rstrip(".")


def _secrets(url: str) -> list[str]:
    """The secrets of the URL, encoded and decoded; the longest first."""
    parts = urlsplit(url)
    given: dict[str, Any] = {}
    with suppress(psycopg.Error):
        given = dict(conninfo_to_dict(url))
    named = (parts.password, unquote(parts.password or ""), given.get("password"), given.get("sslpassword"))
    return sorted({str(secret) for secret in named if secret}, key=len, reverse=True)


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
