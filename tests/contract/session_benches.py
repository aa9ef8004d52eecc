"""Stores of sessions on a bench: two processes of one machine and one of another, which share what is kept.

A new implementation (one on a server, say) adds a maker to `SESSION_STORES` that gives three stores over one place.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from attrs import define, field

from punie.adapters.storage.memory_sessions import MemorySessions, MemorySessionStore
from punie.adapters.storage.sessions import SqliteSessionStore
from punie.domain.session_lease import ProcessIdentity
from punie.ports.process_table import ProcessTable
from punie.ports.session_store import SessionStore
from tests.contract.tables import Maker
from tests.fakes.clock import FakeClock

LOG = logging.getLogger("test.sessions")


@define
class Table(ProcessTable):
    """The processes of a machine, as one of them sees them; `dead` is shared by all of them."""

    process: ProcessIdentity
    dead: set[ProcessIdentity]

    def own(self) -> ProcessIdentity:
        return self.process

    def lives(self, process: ProcessIdentity) -> bool | None:
        return None if process.machine != self.process.machine else process not in self.dead


@define
class StoreBench:
    """`here` and `beside` are processes of one machine, `far` is one of another; `killed` ends the first."""

    clock: FakeClock = field(factory=FakeClock)
    dead: set[ProcessIdentity] = field(factory=set)
    here: SessionStore = field(init=False)
    beside: SessionStore = field(init=False)
    far: SessionStore = field(init=False)

    def tables(self) -> tuple[Table, Table, Table]:
        processes = (ProcessIdentity("m", 7, "a"), ProcessIdentity("m", 8, "b"), ProcessIdentity("n", 7, "a"))
        here, beside, far = (Table(process, self.dead) for process in processes)
        return here, beside, far

    def killed(self) -> None:
        """The process `here` is gone."""
        self.dead.add(ProcessIdentity("m", 7, "a"))


@asynccontextmanager
async def memory_sessions(_folder: Path) -> AsyncIterator[StoreBench]:
    bench, kept = StoreBench(), MemorySessions()
    bench.here, bench.beside, bench.far = (MemorySessionStore(table, bench.clock, kept) for table in bench.tables())
    yield bench


@asynccontextmanager
async def sqlite_sessions(folder: Path) -> AsyncIterator[StoreBench]:
    bench, path = StoreBench(), folder / "state" / "punie.db"
    stores = [SqliteSessionStore(path, LOG, table, bench.clock) for table in bench.tables()]
    bench.here, bench.beside, bench.far = stores
    yield bench
    for store in stores:
        store.close()


SESSION_STORES: dict[type, Maker] = {MemorySessionStore: memory_sessions, SqliteSessionStore: sqlite_sessions}
"""Every implementation of the port and how to put it on a bench."""
