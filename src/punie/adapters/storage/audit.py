"""The audit trail in the user's database: one chain for all processes."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from itertools import takewhile

import anyio.to_thread
from attrs import Factory, astuple, define, evolve, field

from punie.adapters.storage.audit_key import KEY, KnownKey, SealKey
from punie.adapters.storage.batches import BatchWriter
from punie.adapters.storage.database import Database, DatabaseBusyError, Row, UnusableDatabaseError
from punie.adapters.storage.state_file import StateFile
from punie.domain.permission.audit import (
    BEGINNING,
    AuditRow,
    ChainReport,
    ChainStart,
    DecisionRecord,
    Link,
    Seal,
    check_chain,
    unknown_head,
)
from punie.ports.permission import AuditTrail

KEPT_S = 400 * 24 * 3600.0
"""Older rows are deleted when a process begins to write; their links are kept."""

SET_BACK_S = 24 * 3600.0
"""How far the clock may have been set back since rows were deleted."""

READ_ROWS = 1_000
COLUMNS = "number, previous, hash, text"


@define
class SqliteAuditTrail(AuditTrail):
    """Appends to the chain in the database; lives as long as the process.

    Where the database cannot be used, decisions are not written down, which the log of `state` says.
    """

    state: StateFile
    key: SealKey = field(default=Factory(lambda self: SealKey(self.state.path), takes_self=True))
    _writer: BatchWriter[DecisionRecord] = field(init=False)
    _pruned: bool = field(default=False, init=False)
    _unsealed: str | None = field(default=None, init=False)
    """Why the seal was not begun, as the log says."""

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
            return ()

    async def verify(self, noted: str | None = None) -> ChainReport:
        await self.commit()
        known = await anyio.to_thread.run_sync(self.key.find)
        nothing = known.problem or (known.key and f"its database is gone, and its key is in {known.place}")
        if nothing is None and noted is not None:
            nothing = unknown_head(noted)
        try:
            report = await self.state.read(
                lambda database: _verified(database, known, noted), ChainReport(0, BEGINNING, nothing)
            )
        except UnusableDatabaseError as error:
            return ChainReport(0, BEGINNING, str(error))
        if report.key and known.key and await anyio.to_thread.run_sync(self.key.move, known.key):
            await self.state.looked_up("PRAGMA wal_checkpoint(TRUNCATE)")  # the journal may have it from the beginning
        return report

    async def aclose(self) -> None:
        """Write the waiting rows, in bounded time, and end the writer."""
        await self._writer.aclose()

    def _write(self, batch: Sequence[DecisionRecord]) -> bool:
        try:
            self.state.run_here(lambda database: self._append(database, batch))
        except DatabaseBusyError:
            return False
        except UnusableDatabaseError:
            pass  # the log says so
        return True

    def _append(self, database: Database, batch: Sequence[DecisionRecord]) -> None:
        with database.transaction():  # from here on no other process appends: the head stays the head
            if not self._pruned:
                _prune(database, time.time() - KEPT_S)
            number, previous = _head(database)
            rows: list[AuditRow] = []
            for record in batch:
                row = AuditRow.after(number + 1, previous, record)
                database.run("INSERT INTO audit VALUES (?, ?, ?, ?)", (row.number, row.previous, row.hash, row.text))
                number, previous = row.number, row.hash
                rows.append(row)
            self._seal(database, rows)
        self._pruned = True

    def _seal(self, database: Database, added: Sequence[AuditRow]) -> None:
        """Move the seal over the rows that were added or, where it has not begun, over all there are."""
        seal = _seal_of(database)
        if seal is None:
            return  # it was tampered with, which `verify` reports
        if seal.count == 0 and (problem := self.key.keep(seal.key)) is not None:
            if problem != self._unsealed:
                self.state.log.warning("permissions: the audit trail is not sealed: %s", problem)
            self._unsealed = problem
            return
        after = seal.over(map(Link.of, added) if seal.count else _links(database))
        database.run("UPDATE audit_seal SET count = ?, key = ?", (after.count, after.key))


def _start(database: Database) -> ChainStart:
    found = database.run("SELECT number + 1, hash FROM audit_pruned ORDER BY number DESC LIMIT 1")
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
    """Delete the rows before the first that is young enough, and keep their links."""
    links = map(Link.of, _all_rows(database))
    gone = list(takewhile(lambda link: link.at is not None and link.at < before, links))
    if gone:
        database.run_many("INSERT OR IGNORE INTO audit_pruned VALUES (?, ?, ?)", map(astuple, gone))
        database.run("DELETE FROM audit WHERE number <= ?", (gone[-1].number,))


def _verified(database: Database, known: KnownKey, noted: str | None) -> ChainReport:
    database.run("BEGIN")  # a snapshot of the chain, whatever other processes append meanwhile
    try:
        report = check_chain(_all_rows(database), _start(database), _last_number(database))
        if report.fault is None:
            fault = known.problem or _fault(database, known) or _head_fault(database, noted)
            report = evolve(report, fault=fault, key=known.place if fault is None else None)
        return report
    finally:
        database.run("COMMIT")


def _head_fault(database: Database, noted: str | None) -> str | None:
    query = "SELECT 1 FROM audit WHERE hash = ? UNION SELECT 1 FROM audit_pruned WHERE hash = ?"
    return None if noted is None or database.run(query, (noted, noted)) else unknown_head(noted)


def _fault(database: Database, known: KnownKey) -> str | None:
    """The fault in what the seal covers; None where all fits, and where the first decision is still to seal it."""
    seal = _seal_of(database)
    if seal is None:
        return "its seal is gone"
    early = database.run("SELECT min(number) FROM audit_pruned WHERE at > ?", (time.time() - KEPT_S + SET_BACK_S,))
    if early[0][0] is not None:
        return f"row {early[0][0]} was deleted before its time"
    if seal.count == 0 and known.key in {None, seal.key}:
        return None
    if known.key is None:
        return "the key of its seal is gone: put audit.key back from a backup"
    found = Seal(0, known.key).over(_links(database))
    if found.count < seal.count:
        return f"{seal.count - found.count} sealed rows were taken out, the last or deleted ones"
    if found != seal:
        return (
            f"its rows do not fit its seal: they were written anew, or the key in {known.place} belongs to another "
            "trail; remove that key where you began a new trail yourself"
        )
    return None


def _seal_of(database: Database) -> Seal | None:
    found = [Seal(*row) for row in database.run("SELECT count, key FROM audit_seal")]
    return found[0] if len(found) == 1 and KEY.fullmatch(found[0].key) else None


def _links(database: Database) -> Iterator[Link]:
    """The links of all rows, of those that were deleted for their age first."""
    yield from (Link(*row) for row in _paged(database, "number, hash, at", "audit_pruned"))
    yield from map(Link.of, _all_rows(database))


def _all_rows(database: Database) -> Iterator[AuditRow]:
    return (AuditRow(*row) for row in _paged(database, COLUMNS, "audit"))


def _paged(database: Database, columns: str, table: str) -> Iterator[Row]:
    last = -(2**63)
    query = f"SELECT {columns} FROM {table} WHERE number > ? ORDER BY number LIMIT {READ_ROWS}"  # noqa: S608 - our own words
    while rows := database.run(query, (last,)):
        yield from rows
        last = rows[-1][0]
