"""What each server offered last, across processes."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Protocol, runtime_checkable

from punie.domain.server_records import KeptListing


@runtime_checkable
class ServerListings(Protocol):
    """Keeps one listing a server and directory; lives as long as the process, shared by its sessions and by others.

    It never raises: where nothing can be read there is none, and the log says so once.
    """

    @abstractmethod
    async def last(self, directory: str) -> Mapping[str, KeptListing]:
        """The listings kept for that directory, by the server's name; one that cannot be read is not there."""
        ...

    @abstractmethod
    async def keep(self, listing: KeptListing) -> bool:
        """Keep it in place of an earlier one; False where it could not be kept."""
        ...
