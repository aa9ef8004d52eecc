"""The audit trail in an SQL database: a chain for each writer.

The user's database has one writer, which stands for all processes of its user. On a server each installation is a
writer of its own, and notes the heads of the others in its chain: see `audit_notes`.
"""

from __future__ import annotations

import secrets
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice, takewhile
from pathlib import Path
from typing import ClassVar

import anyio.to_thread
from attrs import Factory, define, evolve, field

from punie.adapters.storage import audit_notes
from punie.adapters.storage.audit_key import KEY, KnownKey, SealKey
from punie.adapters.storage.audit_notes import DAY_S, NOTES, Age
from punie.adapters.storage.batches import BatchWriter
from punie.adapters.storage.sql import DatabaseBusyError, Row, Sql, State, UnusableDatabaseError, insert, slower_clock
from punie.domain.permission.audit import (
    BEGINNING,
    AuditRow,
    ChainReport,
    ChainStart,
    DecisionRecord,
    Link,
    Seal,
    canonical,
    check_chain,
    unknown_head,
)
from punie.domain.values.display import counted
from punie.ports.permission import AuditTrail

KEPT_DAYS = 400
"""Older rows are deleted when a process begins to write; their links are kept."""

READ_ROWS = 1_000

PRUNED_ROWS = 5_000
"""Rows that are deleted at once, while calls wait; the next note deletes more."""

BEFORE_ALL = -(2**63)
COLUMNS = "number, previous, hash, text, writer"
LINKS = "number, hash, at"


@define
class SqlAuditTrail(ABC):
    """Appends to the chain of `writer`; lives as long as the process. Rows are kept for `kept_days`.

    Where the database cannot be used for good, decisions are not written down, which the log of `state` says.
    """

    order: ClassVar[str]
    """The column that has the rows of all writers in the order in which they were written."""

    state: State
    key: SealKey = field(default=Factory(lambda self: SealKey(Path(self.state.place)), takes_self=True))
    writer: str = ""
    kept_days: int = KEPT_DAYS
    _writer: BatchWriter[DecisionRecord] = field(init=False)
    _noted_s: float | None = field(default=None, init=False)
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
        query = f"SELECT {COLUMNS} FROM audit WHERE text NOT LIKE ? ORDER BY {self.order} DESC LIMIT ?"  # noqa: S608 - our own words
        await self.commit()
        try:
            rows = await self.state.read(lambda database: database.run(query, (NOTES, limit)), [])
        except UnusableDatabaseError:
            return ()
        return tuple(AuditRow(*row) for row in reversed(rows))

    async def page(self, writer: str = "", after: int = BEFORE_ALL, limit: int = READ_ROWS) -> Sequence[AuditRow]:
        """Rows behind that one, notes among them, chain by chain in the order of their writers; none at the end.

        A chain is read in its own order: places are given before rows are committed, so that by place a row might be
        passed over. Raises `UnusableDatabaseError`.
        """

        def work(database: Sql) -> list[Row]:
            query = f"SELECT {COLUMNS} FROM audit WHERE writer = ? AND number > ? ORDER BY number LIMIT ?"  # noqa: S608 - our own words
            rows = database.run(query, (writer, after, limit))
            for later in () if rows else sorted(name for name in _writers(database) if name > writer):
                if rows := database.run(query, (later, BEFORE_ALL, limit)):
                    break
            return rows

        return tuple(AuditRow(*row) for row in await self.state.read(work, []))

    async def verify(self, noted: str | None = None) -> ChainReport:
        await self.commit()
        known = await anyio.to_thread.run_sync(self.key.find)
        nothing = known.problem or (known.key and f"its database is gone, and its key is in {known.place}")
        if nothing is None and noted is not None:
            nothing = unknown_head(noted)
        empty = ChainReport(0, BEGINNING, nothing, writer=self.writer)
        try:
            report = await self.state.read(lambda database: self._all_verified(database, known, noted), empty)
        except UnusableDatabaseError as error:
            return ChainReport(0, BEGINNING, str(error), writer=self.writer)
        if report.key and known.key and await anyio.to_thread.run_sync(self.key.move, known.key):
            await self._forget_journal()
        return report

    @abstractmethod
    async def _forget_journal(self) -> None:
        """Remove the key, which is in the keyring now, from where the database may still have it."""

    async def aclose(self) -> None:
        """Write the waiting rows, in bounded time, and end the writer."""
        await self._writer.aclose()

    # ------------------------------------------------------------ writing

    def _write(self, batch: Sequence[DecisionRecord]) -> bool:
        try:
            self.state.run_here(self._begin)
            self.state.run_here(lambda database: self._append(database, batch))
        except DatabaseBusyError:
            return False
        except UnusableDatabaseError as error:
            if self.state.trouble is None:  # else the log says so already
                self.state.log.warning("audit: %d decisions are not written down: %s", len(batch), error)
        return True

    def _begin(self, database: Sql) -> None:
        """Begin a chain that has not a single row; the key of its seal is kept beside before anything is sealed."""
        if not _seals(database, self.writer) and not _last_row(database, self.writer):
            values = (self.writer, secrets.token_hex(32))
            database.run("INSERT INTO audit_seal (writer, count, key) VALUES (?, 0, ?) ON CONFLICT DO NOTHING", values)

    def _append(self, database: Sql, batch: Sequence[DecisionRecord]) -> None:
        now, now_s = slower_clock(database), time.monotonic()
        with database.transaction(of=f"audit {self.writer}"):  # no other process appends: the head stays the head
            number, previous = _head(database, self.writer)
            texts = [canonical(record) for record in batch]
            if self._noted_s is None or now_s - self._noted_s > audit_notes.AGAIN_S:
                texts[:0] = audit_notes.note(database, self.writer, now, self.kept_days, self._prune(database, now))
            rows: list[AuditRow] = []
            for text in texts:
                rows.append(AuditRow.of(number + 1, previous, text, self.writer))
                number, previous = rows[-1].number, rows[-1].hash
            values = [(row.number, row.previous, row.hash, row.text, row.writer) for row in rows]
            insert(database, f"audit ({COLUMNS})", values)
            database.run(
                "UPDATE audit_seal SET last = ?, head = ?, changed = ? WHERE writer = ?",
                (number, previous, now, self.writer),
            )
            self._seal(database, rows)
        self._noted_s = now_s if self._noted_s is None or now_s - self._noted_s > audit_notes.AGAIN_S else self._noted_s

    def _prune(self, database: Sql, now: float) -> Mapping[str, int]:
        """Delete rows that are too old, each chain from its beginning, and keep their links; the last one by writer."""
        before, left, last = now - self.kept_days * DAY_S, PRUNED_ROWS, dict[str, int]()
        for (writer,) in database.run("SELECT writer FROM audit_seal ORDER BY writer"):
            links = map(Link.of, _all_rows(database, writer))
            gone = list(islice(takewhile(lambda link: link.at is not None and link.at < before, links), left))
            if gone:
                rows = [(link.number, link.hash, link.at, writer) for link in gone]
                insert(database, f"audit_pruned ({LINKS}, writer)", rows, "ON CONFLICT DO NOTHING")
                database.run("DELETE FROM audit WHERE writer = ? AND number <= ?", (writer, gone[-1].number))
                last[writer], left = gone[-1].number, left - len(gone)
        return last

    def _seal(self, database: Sql, added: Sequence[AuditRow]) -> None:
        """Move the seal over the rows that were added or, where it has not begun, over all there are."""
        seal = _seal_of(database, self.writer)
        if seal is None:
            return  # it was tampered with, which `verify` reports
        if seal.count == 0 and (problem := self.key.keep(seal.key)) is not None:
            if problem != self._unsealed:
                self.state.log.warning("permissions: the audit trail is not sealed: %s", problem)
            self._unsealed = problem
            return
        after = seal.over(map(Link.of, added) if seal.count else _links(database, self.writer))
        database.run("UPDATE audit_seal SET count = ?, key = ? WHERE writer = ?", (after.count, after.key, self.writer))

    # ------------------------------------------------------------ checking

    def _all_verified(self, database: Sql, known: KnownKey, noted: str | None) -> ChainReport:
        age = Age.told_by(database, self.writer, time.time() - self.kept_days * DAY_S)
        own = self._verified(database, self.writer, known, age)
        others = [self._verified(database, writer, None, age) for writer in _writers(database) if writer != self.writer]
        faults = audit_notes.faults(database)
        missing = sorted(faults.keys() - {self.writer, *(other.writer for other in others)})
        others += [ChainReport(0, BEGINNING, writer=writer) for writer in missing]
        own, *others = (
            evolve(one, fault=faults[one.writer], key=None) if one.fault is None and one.writer in faults else one
            for one in (own, *others)
        )
        if own.fault is None and (fault := _head_fault(database, noted)):
            own = evolve(own, fault=fault, key=None)
        return evolve(own, others=tuple(others))

    def _verified(self, database: Sql, writer: str, known: KnownKey | None, age: Age) -> ChainReport:
        """The report on one chain; what processes append meanwhile may look like a fault, so they wait the second time.

        The key is known for the chain of this writer alone.
        """
        report = self._checked(database, writer, known, age)
        if report.fault is None:
            return report
        with database.transaction(of=f"audit {writer}"):
            return self._checked(database, writer, known, age)

    def _checked(self, database: Sql, writer: str, known: KnownKey | None, age: Age) -> ChainReport:
        last = _last_number(database, writer)
        report = check_chain(_all_rows(database, writer), _start(database, writer), last)
        fault = report.fault or age.early(database, writer) or self._seal_fault(database, writer, known)
        place = None if known is None or fault is not None else known.place
        return evolve(report, fault=fault, key=place, writer=writer)

    def _seal_fault(self, database: Sql, writer: str, known: KnownKey | None) -> str | None:
        """The fault in what the seal covers; None where all fits, and where the first decision is still to seal it."""
        seal = _seal_of(database, writer)
        if known is None:
            return None if seal is not None else "its seal is gone"
        if known.problem is not None:
            return known.problem
        if seal is None:
            begun = known.key is not None or _seals(database, writer) or _last_row(database, writer)
            return "its seal is gone" if begun or not self.writer else None
        if seal.count == 0 and known.key in {None, seal.key}:
            return None
        if known.key is None:
            return f"the key of its seal is gone: put {self.key.path.name} back from a backup"
        found = Seal(0, known.key).over(_links(database, writer))
        if found.count < seal.count:
            gone = counted(seal.count - found.count, "sealed row was", "sealed rows were")
            return f"{gone} taken out, the last or deleted ones"
        if found != seal:
            return (
                f"its rows do not fit its seal: they were written anew, or the key in {known.place} belongs to another "
                "trail; remove that key where you began a new trail yourself"
            )
        return None


class SqliteAuditTrail(SqlAuditTrail, AuditTrail):
    """The trail in the user's database: one chain for all processes."""

    order: ClassVar[str] = "number"

    async def _forget_journal(self) -> None:
        await self.state.looked_up("PRAGMA wal_checkpoint(TRUNCATE)")  # it may have the key from the beginning


class PostgresAuditTrail(SqlAuditTrail, AuditTrail):
    """The trails of many installations on a server; this one's is that of `writer`."""

    order: ClassVar[str] = "place"

    async def _forget_journal(self) -> None:
        """Do nothing: the journal is the server's own, which its administrator reads."""


def _writers(database: Sql) -> list[str]:
    return [
        writer for (writer,) in database.run("SELECT writer FROM audit_seal UNION SELECT writer FROM audit ORDER BY 1")
    ]


def _start(database: Sql, writer: str) -> ChainStart:
    query = "SELECT number + 1, hash FROM audit_pruned WHERE writer = ? ORDER BY number DESC LIMIT 1"
    found = database.run(query, (writer,))
    return ChainStart(*found[0]) if found else ChainStart()


def _last_row(database: Sql, writer: str) -> list[Row]:
    return database.run("SELECT hash FROM audit WHERE writer = ? ORDER BY number DESC LIMIT 1", (writer,))


def _head(database: Sql, writer: str) -> tuple[int, str]:
    """Number and hash of the last row; a row that was deleted from the end leaves a gap that `verify` names."""
    found, start = _last_row(database, writer), _start(database, writer)
    return max(_last_number(database, writer), start.number - 1), found[0][0] if found else start.previous


def _last_number(database: Sql, writer: str) -> int:
    sealed, there = "SELECT last FROM audit_seal WHERE writer = ?", "SELECT max(number) FROM audit WHERE writer = ?"
    rows = (*database.run(sealed, (writer,)), *database.run(there, (writer,)))
    return max((int(last) for (last,) in rows if last is not None), default=0)


def _head_fault(database: Sql, noted: str | None) -> str | None:
    query = "SELECT 1 FROM audit WHERE hash = ? UNION SELECT 1 FROM audit_pruned WHERE hash = ?"
    return None if noted is None or database.run(query, (noted, noted)) else unknown_head(noted)


def _seals(database: Sql, writer: str) -> list[Row]:
    return database.run("SELECT count, key FROM audit_seal WHERE writer = ?", (writer,))


def _seal_of(database: Sql, writer: str) -> Seal | None:
    found = [Seal(*row) for row in _seals(database, writer)]
    return found[0] if len(found) == 1 and KEY.fullmatch(found[0].key) else None


def _links(database: Sql, writer: str) -> Iterator[Link]:
    """The links of all rows, of those that were deleted for their age first."""
    yield from (Link(*row) for row in _paged(database, LINKS, "audit_pruned", writer))
    yield from map(Link.of, _all_rows(database, writer))


def _all_rows(database: Sql, writer: str) -> Iterator[AuditRow]:
    return (AuditRow(*row) for row in _paged(database, COLUMNS, "audit", writer))


def _paged(database: Sql, columns: str, table: str, writer: str) -> Iterator[Row]:
    last, limit = BEFORE_ALL, 1  # the look for rows to delete mostly needs the first one alone
    query = f"SELECT {columns} FROM {table} WHERE writer = ? AND number > ? ORDER BY number LIMIT ?"  # noqa: S608 - our own words
    while rows := database.run(query, (writer, last, limit)):
        yield from rows
        last, limit = rows[-1][0], READ_ROWS
