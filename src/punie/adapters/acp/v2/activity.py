"""The state of a session in ACP v2: running, waiting for the person, or idle (`state_update`)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from enum import StrEnum

from attrs import define, field

from punie.domain.session.events import SessionEvent, ToolCallUpdated
from punie.domain.tools.execution import CallStatus

Update = dict[str, object]


class State(StrEnum):
    """ACP's states of a session."""

    IDLE = "idle"
    RUNNING = "running"
    REQUIRES_ACTION = "requires_action"


def state_update(state: State) -> Update:
    """The update for a new state."""
    return {"sessionUpdate": "state_update", "state": state.value}


@define(eq=False)
class Activity:
    """The state of one session, sent through `tell` whenever it changes; lives as long as the session is open here.

    A turn requires action where a question is open and no other call is at work. Questions outside a turn change
    nothing.
    """

    tell: Callable[[Update], None]
    _state: State = field(default=State.IDLE, init=False)
    _stopping: bool = field(default=False, init=False)
    _at_work: set[str] = field(factory=set[str], init=False)
    _asking: Counter[str | None] = field(factory=Counter[str | None], init=False)

    def begin(self, at_work: Iterable[str] = ()) -> None:
        """A turn begins, or goes on for a new client with the calls `at_work` in it."""
        self._stopping = False
        self._at_work.update(at_work)
        self._tell(State.RUNNING)

    def stop(self) -> None:
        """The turn was told to stop, so that settled questions no longer make it run."""
        self._stopping = True

    def end(self, idle: Update) -> None:
        """The turn is over; `idle` is the update that reports how."""
        self._state = State.IDLE
        self._at_work.clear()
        self.tell(idle)

    def follow(self, event: SessionEvent) -> None:
        """Note the calls that start and end."""
        match event:
            case ToolCallUpdated(call_id, CallStatus.IN_PROGRESS):
                self._at_work.add(call_id)
            case ToolCallUpdated(call_id, CallStatus.COMPLETED | CallStatus.FAILED):
                self._at_work.discard(call_id)
            case _:
                return
        self._look()

    @contextmanager
    def asking(self, call_id: str | None) -> Generator[None]:
        """A question is open, for a call or for none.

        After a withdrawn question no state is sent: the next event of the turn tells how it goes on.
        """
        self._asking[call_id] += 1
        self._look()
        try:
            yield
        finally:
            self._asking[call_id] -= 1
            self._asking += Counter()  # drops the entries that reached 0
        self._look()

    def _look(self) -> None:
        if self._state is State.IDLE or self._stopping:
            return
        others = len(self._at_work - set(self._asking))
        blocked = bool(self._asking) and others <= self._asking[None]
        self._tell(State.REQUIRES_ACTION if blocked else State.RUNNING)

    def _tell(self, state: State) -> None:
        if state is not self._state:
            self._state = state
            self.tell(state_update(state))
