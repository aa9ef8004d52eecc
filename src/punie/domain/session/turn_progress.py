"""The progress of a turn, for a client that connects to its session in the middle of it."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import define, field, frozen

from punie.domain.session.events import SessionEvent, ToolCallAnnounced, ToolCallUpdated
from punie.domain.tools.execution import CallStatus


@frozen
class TurnSoFar:
    """A turn at one moment: the number of calls that it announced, and whether each open call is running."""

    turn_id: str
    announced: int = 0
    open_calls: Mapping[str, bool] = field(factory=dict[str, bool])


@define
class TurnProgress:
    """Follows a session's events, one turn after the other; lives as long as the session."""

    _turn_id: str = field(default="", init=False)
    _announced: int = field(default=0, init=False)
    _open: dict[str, bool] = field(factory=dict[str, bool], init=False)

    def begin(self, turn_id: str) -> None:
        """Begin a turn; nothing of the turn before belongs to it."""
        self._turn_id, self._announced = turn_id, 0
        self._open.clear()

    def take(self, event: SessionEvent) -> None:
        """Take the next event."""
        match event:
            case ToolCallAnnounced(call_id):
                self._announced += 1
                self._open[call_id] = False
            case ToolCallUpdated(call_id, CallStatus.IN_PROGRESS) if call_id in self._open:
                self._open[call_id] = True
            case ToolCallUpdated(call_id, CallStatus.COMPLETED | CallStatus.FAILED):
                self._open.pop(call_id, None)
            case _:
                pass

    def of(self, turn_id: str) -> TurnSoFar:
        """That turn as it is now; an unknown one has done nothing yet."""
        if turn_id != self._turn_id:
            return TurnSoFar(turn_id)
        return TurnSoFar(turn_id, self._announced, dict(self._open))
