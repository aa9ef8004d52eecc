"""Sessions in the user's database: logs, snapshots, leases, and the index that is made from the logs."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from attrs import define, evolve, field

from punie.adapters.storage import session_index
from punie.adapters.storage.database import Database, Row
from punie.adapters.storage.session_file import SessionFile
from punie.adapters.storage.session_index import COLUMNS, PROMPT, entries_of, escaped, unescaped
from punie.adapters.storage.session_paging import Place, place_of
from punie.adapters.storage.state_file import for_good
from punie.domain.errors import LeaseLostError, SessionHeldError, SessionStoreError
from punie.domain.session_codec import encoded
from punie.domain.session_lease import Holder, ProcessIdentity, held_by
from punie.domain.session_log import EngineSnapshot, LogEntry, SessionPage, SessionSummary, summarised
from punie.ports.clock import Clock
from punie.ports.process_table import ProcessTable
from punie.ports.session_store import SessionLease, SessionStore

PAGE_CHARS = 8 * 1_048_576
"""How much one reading of a log gives at most, but for one entry that is larger by itself."""

LIST_PAGE = f"""
    SELECT place, {COLUMNS} FROM (
        SELECT *, CASE WHEN updated_at <= ?1 THEN updated_at ELSE (
            SELECT at FROM session_events WHERE session_id = sessions.id AND at <= ?1 ORDER BY sequence DESC LIMIT 1
        ) END AS place FROM sessions
    )
    WHERE place IS NOT NULL AND (?2 IS NULL OR place < ?2 OR (place = ?2 AND id > ?3)) AND (?4 IS NULL OR cwd = ?4)
    ORDER BY place DESC, id LIMIT ?5
    """  # noqa: S608 - our own words
"""The list as it was at one moment: a session that changed since stands where it stood then, on no page or one."""


@define
class SqliteSessionStore(SessionStore):
    """Shares the database at `path` with the other processes of its user; lives as long as the process."""

    path: Path
    log: logging.Logger
    processes: ProcessTable
    clock: Clock
    _file: SessionFile = field(init=False)
    _told: bool = field(default=False, init=False)

    def __attrs_post_init__(self) -> None:
        self._file = SessionFile(self.path)

    def close(self) -> None:
        """Let go of the file; a later use opens it again."""
        self._file.close()

    # ------------------------------------------------------------ leases

    async def acquire(self, session_id: str) -> SessionLease:
        key, own = escaped(session_id), self.processes.own()

        def work(database: Database) -> SessionLease:
            with database.transaction():
                holder = self._holder(database, key, own)
                if holder is not None:
                    raise SessionHeldError(session_id, holder)
                database.run("DELETE FROM session_leases WHERE session_id = ?", (key,))
                ((token,),) = database.run(
                    "INSERT INTO session_leases (session_id, machine, pid, started, renewed_at) "
                    "VALUES (?, ?, ?, ?, ?) RETURNING token",
                    (key, escaped(own.machine), own.pid, own.started, self.clock.epoch_s()),
                )
            return SessionLease(session_id, token)

        return await self._file.run_shielded(work)

    async def renew(self, lease: SessionLease) -> None:
        await self._file.run(lambda database: self._renewed(database, lease))

    async def release(self, lease: SessionLease) -> None:
        def work(database: Database) -> None:
            where = (escaped(lease.session_id), lease.token)
            database.run("DELETE FROM session_leases WHERE session_id = ? AND token = ?", where)

        await self._file.read(work, None)

    # ------------------------------------------------------------ the log

    async def append(self, lease: SessionLease, entries: Sequence[LogEntry], *, lasting: bool = False) -> None:
        def work(database: Database) -> None:
            key = escaped(lease.session_id)
            rows: dict[int, Row] = {}
            for entry in entries:
                if entry.sequence not in rows:
                    rows[entry.sequence] = (key, entry.sequence, entry.at, *encoded(entry.event))
            with for_good(database) if lasting else database.transaction():
                self._renewed(database, lease)
                if rows:
                    _add(database, lease.session_id, entries, rows)

        await self._file.run(work)

    async def read(self, session_id: str, after: int = 0, limit: int = 500) -> Sequence[LogEntry]:
        def work(database: Database) -> Sequence[LogEntry]:
            key, place = escaped(session_id), after
            while rows := _rows_after(database, key, place, limit):
                if entries := entries_of(rows):
                    return tuple(entries)
                place = rows[-1][0]  # nothing of it was understood, and empty would say that this is the end
            return ()

        return await self._file.read(work, ())

    async def last_prompt(self, session_id: str) -> int:
        def work(database: Database) -> int:
            query = f"SELECT max(sequence) FROM session_events WHERE session_id = ? AND kind = '{PROMPT}'"  # noqa: S608 - our own words
            ((last,),) = database.run(query, (escaped(session_id),))
            return last or 0

        return await self._file.read(work, 0)

    # ------------------------------------------------------------ the index

    async def summary(self, session_id: str) -> SessionSummary | None:
        return await self._file.read(lambda database: session_index.current(database, escaped(session_id)), None)

    async def sessions(self, cwd: str | None = None, cursor: str | None = None, limit: int = 50) -> SessionPage:
        begin = None if cursor is None else place_of(cursor)

        def work(database: Database) -> SessionPage:
            if begin is None:
                self._say_mended(session_index.mended(database))
                ((as_of,),) = database.run("SELECT max(updated_at) FROM sessions")
            else:
                as_of = begin.as_of
            before = (None, "") if begin is None else (begin.at, escaped(begin.id))
            where = (as_of, *before, None if cwd is None else escaped(cwd), limit + 1)
            rows = database.run(LIST_PAGE, where)
            return _page(database, rows, as_of, limit)

        return await self._file.read(work, SessionPage(()))

    # ------------------------------------------------------------ snapshots, forks, the end

    async def keep_snapshot(self, lease: SessionLease, snapshot: EngineSnapshot) -> None:
        def work(database: Database) -> None:
            row = (escaped(lease.session_id), escaped(snapshot.engine), snapshot.sequence, snapshot.state)
            with database.transaction():
                self._renewed(database, lease)
                database.run("INSERT OR REPLACE INTO session_snapshots VALUES (?, ?, ?, ?)", row)

        await self._file.run(work)

    async def snapshot(self, session_id: str) -> EngineSnapshot | None:
        def work(database: Database) -> EngineSnapshot | None:
            query = "SELECT engine, sequence, state FROM session_snapshots WHERE session_id = ?"
            for engine, sequence, state in database.run(query, (escaped(session_id),)):
                return EngineSnapshot(unescaped(engine), sequence, state)
            return None

        return await self._file.read(work, None)

    async def fork(self, session_id: str, lease: SessionLease) -> None:
        def work(database: Database) -> None:
            source, copy = escaped(session_id), escaped(lease.session_id)
            with for_good(database):
                self._renewed(database, lease)
                if database.run("SELECT 1 FROM session_events WHERE session_id = ? LIMIT 1", (copy,)):
                    raise SessionStoreError("a session that has begun cannot become a fork")
                for table, columns in (
                    ("events", "sequence, at, kind, body"),
                    ("snapshots", "engine, sequence, state"),
                ):
                    database.run(
                        f"INSERT OR REPLACE INTO session_{table} "  # noqa: S608 - our own words
                        f"SELECT ?, {columns} FROM session_{table} WHERE session_id = ?",
                        (copy, source),
                    )
                summary = session_index.current(database, source)
                if summary is not None:
                    session_index.keep(database, evolve(summary, id=lease.session_id))

        await self._file.run(work)

    async def delete(self, session_id: str) -> bool:
        key, own = escaped(session_id), self.processes.own()

        def work(database: Database) -> bool:
            with for_good(database):
                holder = self._holder(database, key, own, but_own=True)
                if holder is not None:
                    raise SessionHeldError(session_id, holder)
                found = bool(database.run("SELECT 1 FROM session_events WHERE session_id = ? LIMIT 1", (key,)))
                for table in ("session_events", "session_snapshots", "session_leases"):
                    database.run(f"DELETE FROM {table} WHERE session_id = ?", (key,))  # noqa: S608 - our own words
                database.run("DELETE FROM sessions WHERE id = ?", (key,))
            database.run("PRAGMA wal_checkpoint(TRUNCATE)")  # the journal has it still; busy, it goes with the next one
            return found

        return await self._file.read(work, False)

    # ------------------------------------------------------------ within one statement or transaction

    def _holder(self, database: Database, key: str, own: ProcessIdentity, *, but_own: bool = False) -> str | None:
        """In words who holds the session; None where it is free. `but_own`: this process does not count."""
        query = "SELECT machine, pid, started, renewed_at FROM session_leases WHERE session_id = ?"
        for machine, pid, started, renewed_at in database.run(query, (key,)):
            process = ProcessIdentity(unescaped(machine), pid, started)
            if but_own and process == own:
                return None
            lives = self.processes.lives(process)
            return held_by(Holder(process, renewed_at), own, lives=lives, now=self.clock.epoch_s())
        return None

    def _renewed(self, database: Database, lease: SessionLease) -> None:
        """Only its holder writes: a late writer's token is not there any more. Raises `LeaseLostError`."""
        if not database.run(
            "UPDATE session_leases SET renewed_at = ? WHERE session_id = ? AND token = ? RETURNING token",
            (self.clock.epoch_s(), escaped(lease.session_id), lease.token),
        ):
            raise LeaseLostError(lease.session_id)

    def _say_mended(self, sessions: int) -> None:
        if sessions and not self._told:
            self._told = True
            self.log.warning("sessions: the index was made again from the logs, for %d of them", sessions)


def _add(database: Database, session_id: str, entries: Sequence[LogEntry], rows: dict[int, Row]) -> None:
    key = escaped(session_id)
    known = session_index.current(database, key)
    there = database.run(
        "SELECT sequence FROM session_events WHERE session_id = ? AND sequence BETWEEN ? AND ?",
        (key, min(rows), max(rows)),
    )
    for (sequence,) in there:
        rows.pop(sequence, None)  # what is between them may be there too
    database.run_many("INSERT OR IGNORE INTO session_events VALUES (?, ?, ?, ?, ?)", rows.values())
    new = {entry.sequence: entry for entry in reversed(entries) if entry.sequence in rows}
    if not new:
        return
    if known is not None and min(new) < known.last_sequence:
        session_index.make_again(database, key)
        return
    session_index.keep(database, summarised(session_id, (new[sequence] for sequence in sorted(new)), known))


def _rows_after(database: Database, key: str, after: int, limit: int) -> list[Row]:
    query = (
        "SELECT sequence, at, kind, body FROM session_events WHERE session_id = ? AND sequence > ? "
        "ORDER BY sequence LIMIT ?"
    )
    rows: list[Row] = []
    size = 0
    with closing(database.each(query, (key, after, limit))) as found:
        for row in found:
            size += len(row[3])
            if rows and size > PAGE_CHARS:
                break
            rows.append(row)
    return rows


def _page(database: Database, rows: Sequence[Row], as_of: float, limit: int) -> SessionPage:
    shown = rows[:limit]
    found = (session_index.summary_of(row[1:]) or session_index.current(database, row[1]) for row in shown)
    summaries = tuple(summary for summary in found if summary is not None)
    if len(rows) <= limit or not shown:
        return SessionPage(summaries)
    return SessionPage(summaries, Place(as_of, shown[-1][0], unescaped(shown[-1][1])).cursor())
