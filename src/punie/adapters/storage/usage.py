"""The usage ledger in the user's database, and in memory where the database cannot be used."""

from __future__ import annotations

import contextlib
import logging
import queue
import threading
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import anyio.to_thread
import attrs
from attrs import define, field

from punie.adapters.storage.database import Database, DatabaseBusyError, Row, UnusableDatabaseError, open_database
from punie.domain.model.usage import Usage
from punie.domain.session.turn import CallRecord, TurnRecord
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


WAITING_RECORDS = 10_000
"""How many records may wait for the writer; further ones are lost, and the log says so."""

BATCH_RECORDS = 1_000
BATCH_S = 0.1
"""How long the writer gathers before it commits, and so the most that a killed process loses."""

FLUSH_LIMIT_S = 1.0
"""How long the end of the process waits for the writer."""

READ_LIMIT_S = 10.0
"""How long a reading waits for the records before it to be committed; then it reads what is there."""

KEPT_S = 400 * 24 * 3600.0
"""Older records are deleted when a process begins to write: a year can be compared with the one before."""

_Item: TypeAlias = "CallRecord | TurnRecord | threading.Event"
"""An item of the queue: a record, or an event to be set once everything before it is committed."""


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
    _waiting: queue.Queue[_Item] = field(factory=lambda: queue.Queue(WAITING_RECORDS), init=False)
    _lock: threading.Lock = field(factory=threading.Lock, init=False)
    _writer: threading.Thread | None = field(default=None, init=False)
    _lossy: bool = field(default=False, init=False)
    _last: threading.Event | None = field(default=None, init=False)

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
        if self._last is None:
            self._last = threading.Event()
            await anyio.to_thread.run_sync(self._flush, self._last, FLUSH_LIMIT_S, abandon_on_cancel=True)

    # ------------------------------------------------------------ in the thread that records

    def _put(self, record: CallRecord | TurnRecord) -> None:
        if self._last is not None:
            return
        if self._writer is None:
            self._writer = threading.Thread(target=self._write_all, name="punie-usage", daemon=True)
            self._writer.start()
        try:
            self._waiting.put_nowait(record)
        except queue.Full:
            if not self._lossy:
                self._lossy = True
                self.log.warning("usage: the database is too slow, records are being lost")

    # ------------------------------------------------------------ in the writer's thread

    def _write_all(self) -> None:
        database = self._opened()
        batch: list[_Item] = []
        while True:
            batch += self._next_batch()
            if not self._written(database, batch) and len(batch) < WAITING_RECORDS:
                continue  # another process writes for long: once more, together with the next batch
            closing = self._last is not None and self._last in batch
            if closing and database is not None:
                database.close()
            for item in batch:
                if isinstance(item, threading.Event):
                    item.set()
            if closing:
                return
            batch = []

    def _written(self, database: Database | None, batch: Sequence[_Item]) -> bool:
        """Whether the records are in the database or, where that cannot be used, in memory."""
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
            elif isinstance(record, TurnRecord):
                self._memory.record_turn(record)
        return True

    def _opened(self) -> Database | None:
        try:
            database = open_database(self.path)
            _forget(database, time.time() - KEPT_S)
        except UnusableDatabaseError as error:
            self._fail(str(error))
            return None
        return database

    def _next_batch(self) -> list[_Item]:
        """Wait for a first item and gather those that come shortly after it, unless a reading waits."""
        items = [self._waiting.get()]
        until = time.monotonic() + BATCH_S
        while len(items) < BATCH_RECORDS and not isinstance(items[-1], threading.Event):
            try:
                items.append(self._waiting.get(timeout=max(0.0, until - time.monotonic())))
            except queue.Empty:
                break
        return items

    def _fail(self, reason: str) -> None:
        with self._lock:
            if self.trouble is not None:
                return
            self.trouble = reason
        self.log.warning(
            "usage: %s cannot be used: %s. Figures are kept in memory until this process ends; mend or move the file "
            "and start again.", self.path, reason,
        )  # fmt: skip

    # ------------------------------------------------------------ in a thread of anyio's

    def _flush(self, done: threading.Event, limit_s: float) -> None:
        if self._writer is None or not self._writer.is_alive():
            return
        try:
            self._waiting.put(done, timeout=limit_s)
        except queue.Full:
            return
        done.wait(limit_s)

    async def _read(self, table: str, columns: Sequence[str], since: float, session_id: str | None) -> list[Row] | None:
        """The rows asked for, oldest first; None where memory has to answer."""

        def work() -> list[Row] | None:
            self._flush(threading.Event(), READ_LIMIT_S)
            if self.trouble is not None:
                return None
            try:
                return _select(self.path, table, columns, since, session_id) if self.path.exists() else []
            except (UnusableDatabaseError, OSError) as error:
                self._fail(str(error))
                return None

        return await anyio.to_thread.run_sync(work, abandon_on_cancel=True)


def _insert(database: Database, batch: Sequence[_Item]) -> None:
    """Add the records; one whose key is there already changes nothing."""
    calls = [attrs.astuple(record) for record in batch if isinstance(record, CallRecord)]
    turns = [turn_row(record) for record in batch if isinstance(record, TurnRecord)]
    if not calls and not turns:
        return
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
    database = open_database(path)
    try:
        query = (
            f"SELECT {', '.join(columns)} FROM {table} WHERE started_at >= ? AND (? IS NULL OR session_id = ?) "  # noqa: S608 - our own words
            "ORDER BY started_at, rowid"
        )
        return database.run(query, (since, session_id, session_id))
    finally:
        database.close()
