"""The ids of an agent's messages in ACP v2, where every message has one."""

from __future__ import annotations

from attrs import define, field

from punie.domain.session.events import TextDelta, ThoughtDelta, ToolCallAnnounced
from punie.domain.session.log import LoggedEvent, PromptAccepted
from punie.domain.session.turn_progress import TurnSoFar


@define
class MessageIds:
    """Follows one session's events and names what its engine left without a name; lives as long as it is followed.

    What comes between two calls is one message. The names follow from the log alone, so that a replay gives the same.
    """

    _turn: str = field(default="session", init=False)
    _part: int = field(default=0, init=False)

    def begin(self, turn_id: str) -> None:
        """A turn begins."""
        self._turn, self._part = turn_id, 0

    def go_on(self, turn: TurnSoFar) -> None:
        """A turn that is under way is followed from here."""
        self._turn, self._part = turn.turn_id, turn.announced

    def follow(self, event: object | LoggedEvent) -> None:
        """Take notice of an event."""
        match event:
            case PromptAccepted(turn_id):
                self.begin(turn_id)
            case ToolCallAnnounced():
                self._part += 1
            case _:
                pass

    def of(self, event: TextDelta | ThoughtDelta) -> str:
        """The message that this is a piece of."""
        return f"{self._turn}-said-{self._part}" if event.message_id is None else event.message_id
