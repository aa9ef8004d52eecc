"""Grants and pinned definitions in the user's database."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs
from attrs import frozen

from punie.adapters.storage.database import Database, UnusableDatabaseError
from punie.adapters.storage.state_file import StateFile, for_good
from punie.domain.permission.grants import StoredGrant, ToolPin
from punie.ports.permission import GrantStore, PinName, ToolPins

GRANT_COLUMNS = ", ".join(field.name for field in attrs.fields(StoredGrant))


@frozen
class SqliteGrantStore(GrantStore):
    """Reads the file at every question, so that what another process revoked is gone at once."""

    state: StateFile

    async def usable(self) -> bool:
        return await self.state.done(_nothing)

    async def active(self, now: float) -> Sequence[StoredGrant]:
        def work(database: Database) -> Sequence[StoredGrant]:
            query = f"SELECT {GRANT_COLUMNS} FROM grants WHERE expires_at > ? ORDER BY created_at, rowid"  # noqa: S608 - our own words
            return tuple(StoredGrant(*row) for row in database.run(query, (now,)))

        return await self.state.looked_up(work, ())

    async def add(self, grant: StoredGrant) -> bool:
        def work(database: Database) -> None:
            with for_good(database):
                database.run(
                    f"INSERT OR REPLACE INTO grants ({GRANT_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?)",  # noqa: S608 - our own words
                    attrs.astuple(grant),
                )

        return await self.state.done(work)

    async def revoke(self, grant_id: str) -> bool:
        def work(database: Database) -> bool:
            with for_good(database):
                return bool(database.run("DELETE FROM grants WHERE id = ? RETURNING id", (grant_id,)))

        try:
            return await self.state.run(work)
        except UnusableDatabaseError:
            return False

    async def purge(self, now: float) -> int:
        def work(database: Database) -> int:
            with for_good(database):
                return len(database.run("DELETE FROM grants WHERE expires_at <= ? RETURNING id", (now,)))

        return await self.state.looked_up(work, 0)


@frozen
class SqliteToolPins(ToolPins):
    """Keeps one definition a tool, by who serves it and where."""

    state: StateFile

    async def pinned(self, directory: str) -> Mapping[PinName, str] | None:
        def work(database: Database) -> Mapping[PinName, str]:
            query = "SELECT source, server, tool, definition FROM tool_pins WHERE directory = ?"
            return {(source, server, tool): known for source, server, tool, known in database.run(query, (directory,))}

        try:
            return await self.state.read(work, {})
        except UnusableDatabaseError:
            return None

    async def pin(self, pin: ToolPin) -> bool:
        def work(database: Database) -> None:
            with for_good(database):
                database.run("INSERT OR REPLACE INTO tool_pins VALUES (?, ?, ?, ?, ?, ?)", attrs.astuple(pin))

        return await self.state.done(work)


def _nothing(_database: Database) -> None:
    """Opens the file, which is all that is wanted."""
