"""The usage ledger in the user's database."""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

import anyio.to_thread
import attrs
from attrs import define, field

from punie.adapters.storage.batches import BatchWriter
from punie.adapters.storage.database import Database, DatabaseBusyError, Row, UnusableDatabaseError, open_database
from punie.domain.session.turn import CallRecord, PrefixBreak, TurnRecord, Usage
from punie.ports.sessions import UsageLedger

CALL_COLUMNS = tuple(field.name for field in attrs.fields(CallRecord))
OWN_TURN_COLUMNS = tuple(field.name for field in attrs.fields(TurnRecord) if field.name not in {"usage", "broke"})
TURN_COLUMNS = (*OWN_TURN_COLUMNS, *(field.name for field in attrs.fields(Usage)), "broke")


READ_LIMIT_S = 10.0
"""How long a reading waits for the records before it to be committed; then it reads what is there."""

KEPT_S = 400 * 24 * 3600.0
"""Older records are deleted when a process begins to write: a year can be compared with the one before."""


@define
class SqliteUsageLedger(UsageLedger):
    """Keeps records in the database at `path`; lives as long as the process. Nothing is opened before it is needed.

    One thread writes, others read, and recording waits for neither. Where the database cannot be used, `trouble` says
    why, the log says so once, and there are no records.
    """

    path: Path
    log: logging.Logger
    trouble: str | None = field(default=None, init=False)
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
        return tuple(CallRecord(*row) for row in await self._read("calls", CALL_COLUMNS, since, session_id))

    async def turns(self, *, since: float = 0.0, session_id: str | None = None) -> Sequence[TurnRecord]:
        own, rows = len(OWN_TURN_COLUMNS), await self._read("turns", TURN_COLUMNS, since, session_id)
        return tuple(TurnRecord(*row[:own], usage=Usage(*row[own:-1]), broke=_broke(str(row[-1]))) for row in rows)

    async def aclose(self) -> None:
        """Commit the waiting records, in bounded time; later ones are lost."""
        await self._writer.aclose()

    def _put(self, record: CallRecord | TurnRecord) -> None:
        if not self._writer.closed:
            self._writer.add(record)

    def _write(self, batch: Sequence[CallRecord | TurnRecord]) -> bool:
        """Write the records to the database, unless that cannot be used; False where they have to wait for it."""
        if self.trouble is not None:
            return True
        try:
            if self._database is None:
                self._database = open_database(self.path)
                _forget(self._database, time.time() - KEPT_S)
            _insert(self._database, batch)
        except DatabaseBusyError:
            return False
        except UnusableDatabaseError as error:
            self._fail(str(error))
        except (OverflowError, TypeError, ValueError) as error:  # a record that no column takes harms no other
            if len(batch) > 1:
                return all(self._write([record]) for record in batch)
            self.log.warning("usage: a record is lost, which cannot be written: %s", error)
        return True

    def _close(self) -> None:
        database, self._database = self._database, None
        if database is not None:
            database.close()

    def _fail(self, reason: str) -> None:
        self.trouble = reason
        self.log.warning(
            "usage: %s cannot be used: %s. Figures of this process are lost; mend or move the file and start again.",
            self.path, reason,
        )  # fmt: skip

    async def _read(self, table: str, columns: Sequence[str], since: float, session_id: str | None) -> list[Row]:
        """The rows asked for, oldest first."""
        query = (
            f"SELECT {', '.join(columns)} FROM {table} WHERE started_at >= ? AND (? IS NULL OR session_id = ?) "  # noqa: S608 - our own words
            "ORDER BY started_at, rowid"
        )

        def work() -> list[Row]:
            self._writer.flush(READ_LIMIT_S)
            try:
                if self.trouble is None and self.path.exists():
                    with contextlib.closing(open_database(self.path)) as database:
                        return database.run(query, (since, session_id, session_id))
            except (UnusableDatabaseError, OSError) as error:
                self._fail(str(error))
            return []

        return await anyio.to_thread.run_sync(work, abandon_on_cancel=True)


def _insert(database: Database, batch: Sequence[CallRecord | TurnRecord]) -> None:
    """Add the records; one whose key is there already changes nothing."""
    calls = [attrs.astuple(record) for record in batch if isinstance(record, CallRecord)]
    turns = [
        (*(getattr(record, name) for name in OWN_TURN_COLUMNS), *attrs.astuple(record.usage), _text_of(record.broke))
        for record in batch
        if isinstance(record, TurnRecord)
    ]
    with database.transaction():
        for table, columns, rows in (("calls", CALL_COLUMNS, calls), ("turns", TURN_COLUMNS, turns)):
            marks = ", ".join("?" * len(columns))
            statement = f"INSERT OR IGNORE INTO {table} ({', '.join(columns)}) VALUES ({marks})"  # noqa: S608 - our own words
            database.run_many(statement, rows)


def _text_of(broke: Iterable[PrefixBreak]) -> str:
    """A line each, without the numbers of messages, which no sum needs; neither part has a line's end or a tab."""
    return "\n".join(f"{one.what}\t{one.by}" for one in broke)


def _broke(text: str) -> tuple[PrefixBreak, ...]:
    return tuple(PrefixBreak(what, by) for what, _, by in (line.partition("\t") for line in text.splitlines()))


def _forget(database: Database, before: float) -> None:
    with contextlib.suppress(DatabaseBusyError):  # the next process to open it deletes them
        database.run("DELETE FROM calls WHERE started_at < ?", (before,))
        database.run("DELETE FROM turns WHERE started_at < ?", (before,))
