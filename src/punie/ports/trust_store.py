"""Which projects' settings files a person trusted, by their content."""

from __future__ import annotations

from abc import abstractmethod
from typing import Protocol, runtime_checkable


@runtime_checkable
class TrustStore(Protocol):
    """Keeps the digests of trusted files; lives as long as the process, is shared by its sessions and by others.

    It never raises: where nothing can be read or kept, nothing is trusted, and the log says so once. Paths are
    absolute, digests SHA-256 as hex. A file that changed is trusted no longer.
    """

    @abstractmethod
    def trusts(self, path: str, digest: str) -> bool:
        """Whether the file at that path was trusted with exactly that content."""
        ...

    @abstractmethod
    def trust(self, path: str, digest: str, at: float) -> bool:
        """Trust that content from now on, in place of an earlier one; for good when this gives True. `at`: epoch s."""
        ...

    @abstractmethod
    def revoke(self, path: str) -> bool:
        """Trust that file no longer, for good when this returns; False where it was not trusted."""
        ...
