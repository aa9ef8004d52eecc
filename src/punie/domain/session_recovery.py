"""What a turn whose process died still owes its log: an end to every call, and to itself."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from attrs import define, field

from punie.domain.content import Text
from punie.domain.events import CallFinished, ToolCallAnnounced, ToolCallUpdated, TurnEnded
from punie.domain.execution import CallStatus
from punie.domain.session_log import LoggedEvent, PromptAccepted
from punie.domain.tool import ToolOutcome
from punie.domain.transcript import INTERRUPTED

NEVER_BEGAN = "The turn was broken off before this call ran; nothing was done."


@define
class _OpenCall:
    card: ToolCallAnnounced
    begun: bool = False
    told: CallFinished | None = None
    ended: bool = False

    def closing(self) -> Iterator[LoggedEvent]:
        """A call that was let start is interrupted, unless the model was told how it ended; another one did nothing."""
        words = INTERRUPTED if self.begun else NEVER_BEGAN
        told = self.told
        if told is None:
            told = CallFinished(self.card.call_id, self.card.tool, ToolOutcome.CANCELLED, words)
            yield told
        if not self.ended:
            status = CallStatus.COMPLETED if told.outcome is ToolOutcome.SUCCEEDED else CallStatus.FAILED
            yield ToolCallUpdated(self.card.call_id, status, (Text(told.for_model),))


@define
class LastTurn:
    """Takes a log's events in order, and knows what its last turn still owes; keeps its open calls alone."""

    running: bool = field(default=False, init=False)
    _calls: dict[str, _OpenCall] = field(factory=dict[str, _OpenCall], init=False)

    def take(self, event: LoggedEvent) -> None:
        """The next event."""
        match event:
            case PromptAccepted():
                self.running, self._calls = True, {}
            case TurnEnded():
                self.running, self._calls = False, {}
            case ToolCallAnnounced(call_id):
                self._calls[call_id] = _OpenCall(event)
            case ToolCallUpdated(call_id) if call_id in self._calls:
                self._update(self._calls[call_id], event)
            case CallFinished(call_id) if call_id in self._calls:
                self._calls[call_id].told = event
                self._forget(call_id)
            case _:
                pass

    def calls_owed(self) -> tuple[LoggedEvent, ...]:
        """The events that end the calls which are open; none outside of a turn."""
        if not self.running:
            return ()
        return tuple(closing for call in self._calls.values() for closing in call.closing())

    def owed(self) -> tuple[LoggedEvent, ...]:
        """The events that close the turn; none where it is closed."""
        return (*self.calls_owed(), TurnEnded(None)) if self.running else ()

    def _update(self, call: _OpenCall, event: ToolCallUpdated) -> None:
        if event.status is CallStatus.IN_PROGRESS:
            call.begun = True
        elif event.status is not None and event.status.terminal:
            call.ended = True
            self._forget(event.call_id)

    def _forget(self, call_id: str) -> None:
        """A call that owes nothing any more: a turn may have any number of them."""
        call = self._calls[call_id]
        if call.ended and call.told is not None:
            del self._calls[call_id]


def owed(events: Iterable[LoggedEvent]) -> tuple[LoggedEvent, ...]:
    """The events that close the last turn of a log; none where it is closed. `events` begin at its prompt or before."""
    turn = LastTurn()
    for event in events:
        turn.take(event)
    return turn.owed()
