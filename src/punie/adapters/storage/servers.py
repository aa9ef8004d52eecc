"""Approved servers and their last listings in the user's database."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import cast

import attrs
from attrs import frozen

from punie.adapters.storage.database import Database
from punie.adapters.storage.state_file import StateFile, for_good
from punie.domain.servers.server import KeptListing, ServerApproval, ToolInfo
from punie.ports.servers import ServerApprovals, ServerListings

LISTING_LIMIT = 16 * 1024 * 1024
"""Characters of JSON; a listing that takes more is not kept."""


@frozen
class SqliteServerApprovals(ServerApprovals):
    """Reads the file at every question, so that what another process approved counts at once."""

    state: StateFile

    async def approved(self, directory: str) -> Mapping[str, str]:
        def work(database: Database) -> Mapping[str, str]:
            query = "SELECT name, fingerprint FROM approved_servers WHERE directory = ?"
            return dict(cast("list[tuple[str, str]]", database.run(query, (directory,))))

        return await self.state.looked_up(work, {})

    async def approve(self, approval: ServerApproval) -> bool:
        def work(database: Database) -> None:
            with for_good(database):
                database.run("INSERT OR REPLACE INTO approved_servers VALUES (?, ?, ?, ?)", attrs.astuple(approval))

        return await self.state.done(work)

    async def revoke(self, directory: str, name: str) -> bool:
        def work(database: Database) -> None:
            with for_good(database):
                database.run("DELETE FROM approved_servers WHERE directory = ? AND name = ?", (directory, name))

        return await self.state.done(work)


@frozen
class SqliteServerListings(ServerListings):
    """Keeps one row a server and directory."""

    state: StateFile

    async def last(self, directory: str) -> Mapping[str, KeptListing]:
        def work(database: Database) -> Mapping[str, KeptListing]:
            columns = "directory, server, fingerprint, listed_at, tools, legacy"
            query = f"SELECT {columns} FROM server_listings WHERE directory = ?"  # noqa: S608 - both are our own text
            found = (_listing(row) for row in database.run(query, (directory,)))
            return {listing.server: listing for listing in found if listing is not None}

        return await self.state.looked_up(work, {})

    async def keep(self, listing: KeptListing) -> bool:
        # Escaped to ASCII: a server may send half a pair of UTF-16, which no database holds.
        tools = json.dumps([tool.to_dict() for tool in listing.tools], separators=(",", ":"))
        if len(tools) > LISTING_LIMIT:
            return False
        row = (
            listing.directory, listing.server, listing.fingerprint, listing.listed_at, tools, int(listing.legacy),
        )  # fmt: skip

        def work(database: Database) -> None:
            database.run("INSERT OR REPLACE INTO server_listings VALUES (?, ?, ?, ?, ?, ?)", row)

        return await self.state.done(work)


def _listing(row: Sequence[object]) -> KeptListing | None:
    directory, server, fingerprint, listed_at, text, legacy = cast("tuple[str, str, str, float, str, int]", row)
    try:
        tools = tuple(ToolInfo.from_dict(told) for told in cast("list[dict[str, object]]", json.loads(text)))
    except (ValueError, TypeError, AttributeError, RecursionError):
        return None  # somebody else wrote there: the next listing replaces it
    return KeptListing(directory, server, fingerprint, listed_at, tools, bool(legacy))
