"""The usage ledger in memory: for tests, and where the database cannot be used."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import define, field

from punie.domain.session.records import CallRecord, TurnRecord
from punie.ports.sessions import UsageLedger

KEPT_RECORDS = 10_000
"""How many calls, and how many turns, are kept; beyond that the oldest are forgotten."""


@define
class MemoryUsageLedger(UsageLedger):
    """Keeps the latest records of each kind; lives as long as the process."""

    kept: int = KEPT_RECORDS
    _calls: dict[tuple[str, str], CallRecord] = field(factory=dict[tuple[str, str], CallRecord], init=False)
    _turns: dict[tuple[str, str], TurnRecord] = field(factory=dict[tuple[str, str], TurnRecord], init=False)

    def record_call(self, record: CallRecord) -> None:
        self._calls.setdefault((record.session_id, record.correlation_id), record)
        while len(self._calls) > self.kept:
            del self._calls[next(iter(self._calls))]

    def record_turn(self, record: TurnRecord) -> None:
        self._turns.setdefault((record.session_id, record.turn_id), record)
        while len(self._turns) > self.kept:
            del self._turns[next(iter(self._turns))]

    async def calls(self, *, since: float = 0.0, session_id: str | None = None) -> Sequence[CallRecord]:
        return self.kept_calls(since, session_id)

    async def turns(self, *, since: float = 0.0, session_id: str | None = None) -> Sequence[TurnRecord]:
        return self.kept_turns(since, session_id)

    def kept_calls(self, since: float, session_id: str | None) -> Sequence[CallRecord]:
        """As `calls`, for callers that cannot await."""
        found = (call for call in self._calls.values() if _asked_for(call, since, session_id))
        return tuple(sorted(found, key=lambda call: call.started_at))

    def kept_turns(self, since: float, session_id: str | None) -> Sequence[TurnRecord]:
        """As `turns`, for callers that cannot await."""
        found = (turn for turn in self._turns.values() if _asked_for(turn, since, session_id))
        return tuple(sorted(found, key=lambda turn: turn.started_at))


def _asked_for(record: CallRecord | TurnRecord, since: float, session_id: str | None) -> bool:
    return record.started_at >= since and session_id in {None, record.session_id}
