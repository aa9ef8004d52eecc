"""Where decisions are written down."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from punie.domain.audit import AuditRow, ChainReport, DecisionRecord


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
