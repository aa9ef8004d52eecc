"""What is kept of permissions, in memory and in the database, each on a bench of its own."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from punie.adapters.storage.audit import SqliteAuditTrail
from punie.adapters.storage.decisions import (
    SqliteGrantStore,
    SqliteServerApprovals,
    SqliteServerListings,
    SqliteToolPins,
)
from punie.adapters.storage.state_file import StateFile
from punie.ports.permission import AuditTrail, GrantStore, ToolPins
from punie.ports.servers import ServerApprovals, ServerListings
from tests.contract.tables import Maker
from tests.fakes.memory_stores import (
    MemoryAuditTrail,
    MemoryGrantStore,
    MemoryServerApprovals,
    MemoryServerListings,
    MemoryToolPins,
)

LOG = logging.getLogger("test.state")


def state_in(folder: Path) -> StateFile:
    return StateFile(folder / "state" / "punie.db", LOG)


@asynccontextmanager
async def memory_grants(_folder: Path) -> AsyncIterator[GrantStore]:
    yield MemoryGrantStore()


@asynccontextmanager
async def sqlite_grants(folder: Path) -> AsyncIterator[GrantStore]:
    state = state_in(folder)
    yield SqliteGrantStore(state)
    state.close()
    assert not state.hindered


@asynccontextmanager
async def memory_pins(_folder: Path) -> AsyncIterator[ToolPins]:
    yield MemoryToolPins()


@asynccontextmanager
async def sqlite_pins(folder: Path) -> AsyncIterator[ToolPins]:
    state = state_in(folder)
    yield SqliteToolPins(state)
    state.close()
    assert not state.hindered


@asynccontextmanager
async def memory_audit(_folder: Path) -> AsyncIterator[AuditTrail]:
    yield MemoryAuditTrail()


@asynccontextmanager
async def sqlite_audit(folder: Path) -> AsyncIterator[AuditTrail]:
    state = state_in(folder)
    trail = SqliteAuditTrail(state)
    yield trail
    await trail.aclose()
    state.close()
    assert not state.hindered


@asynccontextmanager
async def memory_approvals(_folder: Path) -> AsyncIterator[ServerApprovals]:
    yield MemoryServerApprovals()


@asynccontextmanager
async def sqlite_approvals(folder: Path) -> AsyncIterator[ServerApprovals]:
    state = state_in(folder)
    yield SqliteServerApprovals(state)
    state.close()
    assert not state.hindered


@asynccontextmanager
async def memory_listings(_folder: Path) -> AsyncIterator[ServerListings]:
    yield MemoryServerListings()


@asynccontextmanager
async def sqlite_listings(folder: Path) -> AsyncIterator[ServerListings]:
    state = state_in(folder)
    yield SqliteServerListings(state)
    state.close()
    assert not state.hindered


GRANT_STORES: dict[type, Maker] = {MemoryGrantStore: memory_grants, SqliteGrantStore: sqlite_grants}
TOOL_PINS: dict[type, Maker] = {MemoryToolPins: memory_pins, SqliteToolPins: sqlite_pins}
AUDIT_TRAILS: dict[type, Maker] = {MemoryAuditTrail: memory_audit, SqliteAuditTrail: sqlite_audit}
SERVER_APPROVALS: dict[type, Maker] = {MemoryServerApprovals: memory_approvals, SqliteServerApprovals: sqlite_approvals}
SERVER_LISTINGS: dict[type, Maker] = {MemoryServerListings: memory_listings, SqliteServerListings: sqlite_listings}
"""Every implementation of the port and how to put it on a bench."""
