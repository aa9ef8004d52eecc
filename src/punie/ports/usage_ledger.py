"""Where calls and turns are written down."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from punie.domain.records import CallRecord, TurnRecord


@runtime_checkable
class UsageLedger(Protocol):
    """Keeps what was used; lives as long as the process and is shared by its sessions.

    Recording never raises and never holds a call up: what cannot be written is logged and lost. Records are kept in
    the order of recording; one of the same session and id replaces nothing and is kept once (idempotent).
    """

    @abstractmethod
    def record_call(self, record: CallRecord) -> None:
        """Write down a finished call, at once and without waiting."""
        ...

    @abstractmethod
    def record_turn(self, record: TurnRecord) -> None:
        """Write down a finished turn, at once and without waiting."""
        ...

    @abstractmethod
    async def calls(self, *, since: float = 0.0, session_id: str | None = None) -> Sequence[CallRecord]:
        """The calls that started at `since` (seconds since the epoch) or later, oldest first."""
        ...

    @abstractmethod
    async def turns(self, *, since: float = 0.0, session_id: str | None = None) -> Sequence[TurnRecord]:
        """The turns that started at `since` or later, oldest first."""
        ...
