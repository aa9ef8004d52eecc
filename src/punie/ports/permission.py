"""Permission: who is asked, and where answers, grants and decisions are kept."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Protocol, TypeAlias, runtime_checkable

from punie.domain.permission.audit import AuditRow, ChainReport, DecisionRecord
from punie.domain.permission.flow import PermissionOutcome, PermissionQuestion
from punie.domain.permission.grants import StoredGrant, ToolPin


@runtime_checkable
class PermissionBroker(Protocol):
    """Carries a question to whoever can answer it; lives as long as its session."""

    @abstractmethod
    async def ask(self, question: PermissionQuestion) -> PermissionOutcome:
        """Ask once and wait for the answer, however long the person thinks.

        Never raises for what the other side does: an error, a malformed answer or a closed connection is an outcome,
        and no outcome but `Selected` can allow anything. Several questions may be open at once.
        """
        ...


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


PinName: TypeAlias = tuple[str, str, str]
"""Source, server and tool."""


@runtime_checkable
class ToolPins(Protocol):
    """Keeps the definitions approved last; lives as long as the process, shared by its sessions. It never raises."""

    @abstractmethod
    async def pinned(self, directory: str) -> Mapping[PinName, str] | None:
        """The digests approved in that directory; None where unreadable: then no definition counts as approved."""
        ...

    @abstractmethod
    async def pin(self, pin: ToolPin) -> bool:
        """Keep it in place of an earlier one, for good when this returns; False where it could not be kept."""
        ...


@runtime_checkable
class AuditTrail(Protocol):
    """One chain of decisions, however many processes append to it; lives as long as the process. It never raises."""

    @abstractmethod
    def record(self, record: DecisionRecord) -> None:
        """Take a decision down at once, without waiting; it is written with the next batch."""
        ...

    @abstractmethod
    async def commit(self) -> None:
        """Everything recorded before is written when this returns, as far as it can be: call it before an effect."""
        ...

    @abstractmethod
    async def latest(self, limit: int) -> Sequence[AuditRow]:
        """The last rows of the chain, oldest first, with what was recorded before."""
        ...

    @abstractmethod
    async def verify(self) -> ChainReport:
        """Look through the whole chain."""
        ...


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
