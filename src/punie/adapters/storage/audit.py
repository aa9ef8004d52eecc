"""The audit trail in the user's database, one chain for all processes, and in memory where that cannot be used."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator, Sequence

from attrs import define, field

from punie.adapters.storage.batches import BatchWriter
from punie.adapters.storage.database import Database, DatabaseBusyError, UnusableDatabaseError
from punie.adapters.storage.state_file import StateFile
from punie.domain.permission.audit import BEGINNING, AuditRow, ChainReport, ChainStart, DecisionRecord, check_chain
from punie.ports.permission import AuditTrail

KEPT_ROWS = 10_000
"""How many rows of the trail are kept in memory; beyond that the oldest are forgotten."""

KEPT_S = 400 * 24 * 3600.0
"""Older rows are deleted when a process begins to write."""

READ_ROWS = 1_000
COLUMNS = "number, previous, hash, text"
AT = "CASE WHEN json_valid(text) THEN json_extract(text, '$.at') END"
"""When a row was written; null where its text was tampered with, which `verify` reports."""


@define
class MemoryAuditTrail(AuditTrail):
    """Keeps the end of the chain as long as the process lives; may be written from any one thread at a time."""

    kept: int = KEPT_ROWS
    _rows: deque[AuditRow] = field(factory=deque[AuditRow], init=False)
    _start: ChainStart = field(factory=ChainStart, init=False)

    def record(self, record: DecisionRecord) -> None:
        number, previous = self._start.number, self._start.previous
        if self._rows:
            number, previous = self._rows[-1].number + 1, self._rows[-1].hash
        self._rows.append(AuditRow.after(number, previous, record))
        while len(self._rows) > self.kept:
            gone = self._rows.popleft()
            self._start = ChainStart(gone.number + 1, gone.hash)

    async def commit(self) -> None:
        """Do nothing: the rows are kept already."""

    async def latest(self, limit: int) -> Sequence[AuditRow]:
        return tuple(self._rows)[-limit:] if limit > 0 else ()

    async def verify(self) -> ChainReport:
        return check_chain(tuple(self._rows), self._start)


@define
class SqliteAuditTrail(AuditTrail):
    """Appends to the chain in the database, or in memory where that is unusable; lives as long as the process."""

    state: StateFile
    _memory: MemoryAuditTrail = field(factory=MemoryAuditTrail, init=False)
    _writer: BatchWriter[DecisionRecord] = field(init=False)
    _pruned: bool = field(default=False, init=False)

    def __attrs_post_init__(self) -> None:
        lossy = "audit: the database is too slow, decisions are not written down"
        self._writer = BatchWriter("punie-audit", self._write, self.state.log, lossy)

    def record(self, record: DecisionRecord) -> None:
        self._writer.add(record)

    async def commit(self) -> None:
        await self._writer.commit()

    async def latest(self, limit: int) -> Sequence[AuditRow]:
        def work(database: Database) -> Sequence[AuditRow]:
            query = f"SELECT {COLUMNS} FROM audit ORDER BY number DESC LIMIT ?"  # noqa: S608 - our own words
            return tuple(AuditRow(*row) for row in reversed(database.run(query, (limit,))))

        await self.commit()
        try:
            return await self.state.read(work, ())
        except UnusableDatabaseError:
            return await self._memory.latest(limit)

    async def verify(self) -> ChainReport:
        await self.commit()
        try:
            return await self.state.read(_verified, ChainReport(0, BEGINNING))
        except UnusableDatabaseError:
            return await self._memory.verify()

    async def aclose(self) -> None:
        """Write the waiting rows, in bounded time, and end the writer."""
        await self._writer.aclose()

    def _write(self, batch: Sequence[DecisionRecord]) -> bool:
        try:
            self.state.run_here(lambda database: self._append(database, batch))
        except DatabaseBusyError:
            return False
        except UnusableDatabaseError:
            for record in batch:
                self._memory.record(record)
        return True

    def _append(self, database: Database, batch: Sequence[DecisionRecord]) -> None:
        with database.transaction():  # from here on no other process appends: the head stays the head
            if not self._pruned:
                _prune(database, time.time() - KEPT_S)
            number, previous = _head(database)
            for record in batch:
                row = AuditRow.after(number + 1, previous, record)
                database.run("INSERT INTO audit VALUES (?, ?, ?, ?)", (row.number, row.previous, row.hash, row.text))
                number, previous = row.number, row.hash
        self._pruned = True


def _start(database: Database) -> ChainStart:
    found = database.run("SELECT number, previous FROM audit_start")
    return ChainStart(*found[0]) if found else ChainStart()


def _head(database: Database) -> tuple[int, str]:
    """Number and hash of the last row; a row that was deleted from the end leaves a gap that `verify` names."""
    found = database.run("SELECT hash FROM audit ORDER BY number DESC LIMIT 1")
    start = _start(database)
    return max(_last_number(database), start.number - 1), found[0][0] if found else start.previous


def _last_number(database: Database) -> int:
    found = database.run("SELECT seq FROM sqlite_sequence WHERE name = 'audit'")
    return int(found[0][0]) if found else 0


def _prune(database: Database, before: float) -> None:
    """Delete the rows before the first that is young enough, and store the new beginning of the chain."""
    oldest = database.run(f"SELECT {AT} FROM audit ORDER BY number LIMIT 1")  # noqa: S608 - our own words
    if not oldest or oldest[0][0] is None or oldest[0][0] >= before:
        return
    query = f"SELECT number, previous FROM audit WHERE {AT} >= ? ORDER BY number LIMIT 1"  # noqa: S608 - our own words
    number, head = _head(database)
    kept = (database.run(query, (before,)) or [(number + 1, head)])[0]
    database.run("DELETE FROM audit_start")
    database.run("INSERT INTO audit_start VALUES (?, ?)", kept)
    database.run("DELETE FROM audit WHERE number < ?", (kept[0],))


def _verified(database: Database) -> ChainReport:
    database.run("BEGIN")  # a snapshot of the chain, whatever other processes append meanwhile
    try:
        return check_chain(_all_rows(database), _start(database), _last_number(database))
    finally:
        database.run("COMMIT")


def _all_rows(database: Database) -> Iterator[AuditRow]:
    last = -(2**63)
    query = f"SELECT {COLUMNS} FROM audit WHERE number > ? ORDER BY number LIMIT {READ_ROWS}"  # noqa: S608 - our own words
    while rows := database.run(query, (last,)):
        yield from (AuditRow(*row) for row in rows)
        last = rows[-1][0]
