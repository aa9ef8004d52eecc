"""Where grants are kept that outlive their session."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from punie.domain.grants import StoredGrant


@runtime_checkable
class GrantStore(Protocol):
    """Keeps grants; lives as long as the process, is shared by its sessions and by other processes.

    It never raises: where grants cannot be read there are none, so that a person is asked, and the log says so once.
    Times are seconds since the epoch.
    """

    @abstractmethod
    async def usable(self) -> bool:
        """Whether grants can be kept: where not, none is to be offered."""
        ...

    @abstractmethod
    async def active(self, now: float) -> Sequence[StoredGrant]:
        """The grants that have not expired, oldest first; one that was revoked, by whichever process, is not there."""
        ...

    @abstractmethod
    async def add(self, grant: StoredGrant) -> bool:
        """Keep it, for good when this returns; False where it could not be kept. One of the same id is replaced."""
        ...

    @abstractmethod
    async def revoke(self, grant_id: str) -> bool:
        """Forget it, for good when this returns; False where there was none of that whole id."""
        ...

    @abstractmethod
    async def purge(self, now: float) -> int:
        """Forget those that have expired; gives how many."""
        ...
