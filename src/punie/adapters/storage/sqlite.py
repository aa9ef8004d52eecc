"""The usage ledger in the user's database: written by one thread, read by another, never in anybody's way."""

from __future__ import annotations

import contextlib
import logging
import queue
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeAlias

import anyio.to_thread
import attrs
from attrs import define, field

from punie.adapters.storage.database import Database, DatabaseBusyError, Row, UnusableDatabaseError, open_database
from punie.adapters.storage.memory import MemoryUsageLedger
from punie.domain.model.usage import Usage
from punie.domain.session.turn import CallRecord, TurnRecord
from punie.domain.tools.tool import ToolOutcome
from punie.ports.sessions import UsageLedger

CALL_COLUMNS = tuple(field.name for field in attrs.fields(CallRecord))
USAGE_COLUMNS = tuple(field.name for field in attrs.fields(Usage))
TURN_COLUMNS = (*(field.name for field in attrs.fields(TurnRecord) if field.name != "usage"), *USAGE_COLUMNS)


def insert_of(table: str, columns: Sequence[str]) -> str:
    """The statement that adds a row; one with a key that is there already changes nothing."""
    marks = ", ".join("?" for _ in columns)
    return f"INSERT OR IGNORE INTO {table} ({', '.join(columns)}) VALUES ({marks})"  # noqa: S608 - our own words


def call_row(record: CallRecord) -> tuple[Any, ...]:
    """The values of `CALL_COLUMNS`."""
    row = attrs.asdict(record, recurse=False)
    return tuple(record.outcome.value if name == "outcome" else row[name] for name in CALL_COLUMNS)


def call_of(row: Sequence[Any]) -> CallRecord:
    """The record of a row of `CALL_COLUMNS`."""
    values = dict(zip(CALL_COLUMNS, row, strict=True))
    values["outcome"] = ToolOutcome(values["outcome"])
    return CallRecord(**values)


def turn_row(record: TurnRecord) -> tuple[Any, ...]:
    """The values of `TURN_COLUMNS`."""
    row = attrs.asdict(record, recurse=False) | attrs.asdict(record.usage)
    return tuple(row[name] for name in TURN_COLUMNS)


def turn_of(row: Sequence[Any]) -> TurnRecord:
    """The record of a row of `TURN_COLUMNS`."""
    values = dict(zip(TURN_COLUMNS, row, strict=True))
    usage = Usage(**{name: values.pop(name) for name in USAGE_COLUMNS})
    return TurnRecord(**values, usage=usage)


WAITING_RECORDS = 10_000
"""How many records may wait for the writer; what comes beyond is lost, and said in the log."""

BATCH_RECORDS = 1_000
BATCH_S = 0.1
"""How long the writer gathers before it commits: all that a process loses that is killed."""

FLUSH_LIMIT_S = 1.0
"""How long the end of the process waits for the writer."""

READ_LIMIT_S = 10.0
"""How long a reading waits for what was recorded before it; then it reads what is there."""

KEPT_S = 400 * 24 * 3600.0
"""Records older than that are deleted when a process begins to write: a year can be compared with the one before."""

_Item: TypeAlias = "CallRecord | TurnRecord | threading.Event"
"""What the queue carries: a record, or an event to be set once everything before it is committed."""


@define
class SqliteUsageLedger(UsageLedger):
    """Keeps records in the database at `path`; lives as long as the process. Nothing is opened before it is needed.

    Where the database cannot be used, `trouble` says why, the log says so once, and memory serves in its place.
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
        if rows is not None:
            return tuple(call_of(row) for row in rows)
        with self._lock:
            return self._memory.kept_calls(since, session_id)

    async def turns(self, *, since: float = 0.0, session_id: str | None = None) -> Sequence[TurnRecord]:
        rows = await self._read("turns", TURN_COLUMNS, since, session_id)
        if rows is not None:
            return tuple(turn_of(row) for row in rows)
        with self._lock:
            return self._memory.kept_turns(since, session_id)

    async def aclose(self) -> None:
        """Commit what waits, in bounded time; what is recorded afterwards is lost."""
        if self._last is None:
            self._last = threading.Event()
            await anyio.to_thread.run_sync(self._flush, self._last, FLUSH_LIMIT_S, abandon_on_cancel=True)

    # ------------------------------------------------------------ recording, in the thread of whoever records

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

    # ------------------------------------------------------------ the writer's thread

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
        self._remember(batch)
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
        """Wait for a first item; what comes shortly after it goes with it, unless somebody waits."""
        items = [self._waiting.get()]
        until = time.monotonic() + BATCH_S
        while len(items) < BATCH_RECORDS and not isinstance(items[-1], threading.Event):
            try:
                items.append(self._waiting.get(timeout=max(0.0, until - time.monotonic())))
            except queue.Empty:
                break
        return items

    def _remember(self, records: Sequence[_Item]) -> None:
        with self._lock:
            for record in records:
                if isinstance(record, CallRecord):
                    self._memory.record_call(record)
                elif isinstance(record, TurnRecord):
                    self._memory.record_turn(record)

    def _fail(self, reason: str) -> None:
        with self._lock:
            if self.trouble is not None:
                return
            self.trouble = reason
        self.log.warning(
            "usage: %s cannot be used: %s. Figures are kept in memory until this process ends; mend or move the file "
            "and start again.", self.path, reason,
        )  # fmt: skip

    # ------------------------------------------------------------ reading, in a thread of anyio's

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
    calls = [call_row(record) for record in batch if isinstance(record, CallRecord)]
    turns = [turn_row(record) for record in batch if isinstance(record, TurnRecord)]
    if calls or turns:
        with database.transaction():
            database.run_many(insert_of("calls", CALL_COLUMNS), calls)
            database.run_many(insert_of("turns", TURN_COLUMNS), turns)


def _forget(database: Database, before: float) -> None:
    with contextlib.suppress(DatabaseBusyError):  # whoever opens it next will do it
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
