"""Which of a project's servers a person let run."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Protocol, runtime_checkable

from punie.domain.server_records import ServerApproval


@runtime_checkable
class ServerApprovals(Protocol):
    """Keeps approvals; lives as long as the process, is shared by its sessions and by other processes.

    It never raises: where nothing can be read, nothing is approved, and the log says so once.
    """

    @abstractmethod
    async def approved(self, directory: str) -> Mapping[str, str]:
        """The fingerprints approved in exactly that directory, by the server's name."""
        ...

    @abstractmethod
    async def approve(self, approval: ServerApproval) -> bool:
        """Keep it in place of an earlier one, for good when this returns; False where it could not be kept."""
        ...

    @abstractmethod
    async def revoke(self, directory: str, name: str) -> bool:
        """Take the approval of that server in exactly that directory back, for good when this returns.

        Where there was none nothing changes; False where it could not be taken back.
        """
        ...
