"""The usage ledger in the user's database, and in memory where the database cannot be used."""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import anyio.to_thread
import attrs
from attrs import define, field

from punie.adapters.storage.batches import BatchWriter
from punie.adapters.storage.database import Database, DatabaseBusyError, Row, UnusableDatabaseError, open_database
from punie.domain.session.turn import CallRecord, TurnRecord, Usage
from punie.domain.tools.tool import ToolOutcome
from punie.ports.sessions import UsageLedger

KEPT_RECORDS = 10_000
"""How many calls, and how many turns, are kept in memory; beyond that the oldest are forgotten."""

CALL_COLUMNS = tuple(field.name for field in attrs.fields(CallRecord))
OWN_TURN_COLUMNS = tuple(field.name for field in attrs.fields(TurnRecord) if field.name != "usage")
TURN_COLUMNS = (*OWN_TURN_COLUMNS, *(field.name for field in attrs.fields(Usage)))

R = TypeVar("R", CallRecord, TurnRecord)


@define
class MemoryUsageLedger(UsageLedger):
    """Keeps the latest records of each kind; lives as long as the process. One thread records, any thread reads."""

    kept: int = KEPT_RECORDS
    _calls: dict[tuple[str, str], CallRecord] = field(factory=dict[tuple[str, str], CallRecord], init=False)
    _turns: dict[tuple[str, str], TurnRecord] = field(factory=dict[tuple[str, str], TurnRecord], init=False)

    def record_call(self, record: CallRecord) -> None:
        self._calls.setdefault((record.session_id, record.correlation_id), record)
        while len(self._calls) > self.kept:
            del self._calls[next(iter(self._calls))]

    def record_turn(self, record: TurnRecord) -> None:
        self._turns.setdefault((record.session_id, record.turn_id), record)
        while len(self._turns) > self.kept:
            del self._turns[next(iter(self._turns))]

    async def calls(self, *, since: float = 0.0, session_id: str | None = None) -> Sequence[CallRecord]:
        return _asked_for(list(self._calls.values()), since, session_id)

    async def turns(self, *, since: float = 0.0, session_id: str | None = None) -> Sequence[TurnRecord]:
        return _asked_for(list(self._turns.values()), since, session_id)


def _asked_for(records: Iterable[R], since: float, session_id: str | None) -> Sequence[R]:
    found = (one for one in records if one.started_at >= since and session_id in {None, one.session_id})
    return tuple(sorted(found, key=lambda record: record.started_at))


def call_of(row: Sequence[Any]) -> CallRecord:
    """The record of a row of `CALL_COLUMNS`."""
    values = dict(zip(CALL_COLUMNS, row, strict=True))
    values["outcome"] = ToolOutcome(values["outcome"])
    return CallRecord(**values)


def turn_row(record: TurnRecord) -> tuple[Any, ...]:
    """The values of `TURN_COLUMNS`."""
    return (*(getattr(record, name) for name in OWN_TURN_COLUMNS), *attrs.astuple(record.usage))


def turn_of(row: Sequence[Any]) -> TurnRecord:
    """The record of a row of `TURN_COLUMNS`."""
    own = len(OWN_TURN_COLUMNS)
    return TurnRecord(*row[:own], usage=Usage(*row[own:]))


READ_LIMIT_S = 10.0
"""How long a reading waits for the records before it to be committed; then it reads what is there."""

KEPT_S = 400 * 24 * 3600.0
"""Older records are deleted when a process begins to write: a year can be compared with the one before."""


@define
class SqliteUsageLedger(UsageLedger):
    """Keeps records in the database at `path`; lives as long as the process. Nothing is opened before it is needed.

    One thread writes, others read, and recording waits for neither. Where the database cannot be used, `trouble` says
    why, the log says so once, and memory serves in its place.
    """

    path: Path
    log: logging.Logger
    trouble: str | None = field(default=None, init=False)
    _memory: MemoryUsageLedger = field(factory=MemoryUsageLedger, init=False)
    _lock: threading.Lock = field(factory=threading.Lock, init=False)
    _database: Database | None = field(default=None, init=False)
    _writer: BatchWriter[CallRecord | TurnRecord] = field(init=False)

    def __attrs_post_init__(self) -> None:
        lossy = "usage: the database is too slow, records are being lost"
        self._writer = BatchWriter("punie-usage", self._write, self.log, lossy, self._close)

    def record_call(self, record: CallRecord) -> None:
        self._put(record)

    def record_turn(self, record: TurnRecord) -> None:
        self._put(record)

    async def calls(self, *, since: float = 0.0, session_id: str | None = None) -> Sequence[CallRecord]:
        rows = await self._read("calls", CALL_COLUMNS, since, session_id)
        if rows is None:
            return await self._memory.calls(since=since, session_id=session_id)
        return tuple(map(call_of, rows))

    async def turns(self, *, since: float = 0.0, session_id: str | None = None) -> Sequence[TurnRecord]:
        rows = await self._read("turns", TURN_COLUMNS, since, session_id)
        if rows is None:
            return await self._memory.turns(since=since, session_id=session_id)
        return tuple(map(turn_of, rows))

    async def aclose(self) -> None:
        """Commit the waiting records, in bounded time; later ones are lost."""
        await self._writer.aclose()

    def _put(self, record: CallRecord | TurnRecord) -> None:
        if not self._writer.closed:
            self._writer.add(record)

    def _write(self, batch: Sequence[CallRecord | TurnRecord]) -> bool:
        """Write the records to the database or, where that cannot be used, to memory."""
        database = self._database or self._opened()
        if database is not None and self.trouble is None:
            try:
                _insert(database, batch)
                return True
            except DatabaseBusyError:
                return False
            except (UnusableDatabaseError, OverflowError, TypeError, ValueError) as error:
                self._fail(str(error))
        for record in batch:
            if isinstance(record, CallRecord):
                self._memory.record_call(record)
            else:
                self._memory.record_turn(record)
        return True

    def _opened(self) -> Database | None:
        if self.trouble is not None:
            return None
        try:
            self._database = open_database(self.path)
            _forget(self._database, time.time() - KEPT_S)
        except UnusableDatabaseError as error:
            self._fail(str(error))
        return self._database

    def _close(self) -> None:
        database, self._database = self._database, None
        if database is not None:
            database.close()

    def _fail(self, reason: str) -> None:
        with self._lock:
            if self.trouble is not None:
                return
            self.trouble = reason
        self.log.warning(
            "usage: %s cannot be used: %s. Figures are kept in memory until this process ends; mend or move the file "
            "and start again.", self.path, reason,
        )  # fmt: skip

    async def _read(self, table: str, columns: Sequence[str], since: float, session_id: str | None) -> list[Row] | None:
        """The rows asked for, oldest first; None where memory has to answer."""

        def work() -> list[Row] | None:
            self._writer.flush(READ_LIMIT_S)
            if self.trouble is not None:
                return None
            try:
                return _select(self.path, table, columns, since, session_id) if self.path.exists() else []
            except (UnusableDatabaseError, OSError) as error:
                self._fail(str(error))
                return None

        return await anyio.to_thread.run_sync(work, abandon_on_cancel=True)


def _insert(database: Database, batch: Sequence[CallRecord | TurnRecord]) -> None:
    """Add the records; one whose key is there already changes nothing."""
    calls = [attrs.astuple(record) for record in batch if isinstance(record, CallRecord)]
    turns = [turn_row(record) for record in batch if isinstance(record, TurnRecord)]
    with database.transaction():
        for table, columns, rows in (("calls", CALL_COLUMNS, calls), ("turns", TURN_COLUMNS, turns)):
            marks = ", ".join("?" * len(columns))
            statement = f"INSERT OR IGNORE INTO {table} ({', '.join(columns)}) VALUES ({marks})"  # noqa: S608 - our own words
            database.run_many(statement, rows)


def _forget(database: Database, before: float) -> None:
    with contextlib.suppress(DatabaseBusyError):  # the next process to open it deletes them
        database.run("DELETE FROM calls WHERE started_at < ?", (before,))
        database.run("DELETE FROM turns WHERE started_at < ?", (before,))


def _select(path: Path, table: str, columns: Sequence[str], since: float, session_id: str | None) -> list[Row]:
    query = (
        f"SELECT {', '.join(columns)} FROM {table} WHERE started_at >= ? AND (? IS NULL OR session_id = ?) "  # noqa: S608 - our own words
        "ORDER BY started_at, rowid"
    )
    with contextlib.closing(open_database(path)) as database:
        return database.run(query, (since, session_id, session_id))
