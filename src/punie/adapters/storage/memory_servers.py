"""Approved servers and their last listings in memory: for tests, and for sessions that keep nothing."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import define, field

from punie.domain.servers.records import KeptListing, ServerApproval
from punie.ports.servers import ServerApprovals, ServerListings


@define
class MemoryServerApprovals(ServerApprovals):
    """Keeps approvals as long as the process lives."""

    _approved: dict[tuple[str, str], str] = field(factory=dict[tuple[str, str], str], init=False)

    async def approved(self, directory: str) -> Mapping[str, str]:
        return {name: known for (where, name), known in self._approved.items() if where == directory}

    async def approve(self, approval: ServerApproval) -> bool:
        self._approved[approval.directory, approval.name] = approval.fingerprint
        return True

    async def revoke(self, directory: str, name: str) -> bool:
        self._approved.pop((directory, name), None)
        return True


@define
class MemoryServerListings(ServerListings):
    """Keeps listings as long as the process lives."""

    _listings: dict[tuple[str, str], KeptListing] = field(factory=dict[tuple[str, str], KeptListing], init=False)

    async def last(self, directory: str) -> Mapping[str, KeptListing]:
        return {name: kept for (where, name), kept in self._listings.items() if where == directory}

    async def keep(self, listing: KeptListing) -> bool:
        self._listings[listing.directory, listing.server] = listing
        return True
