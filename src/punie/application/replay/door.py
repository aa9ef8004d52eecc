"""The desk's place in a replay: calls are answered from the record, and nothing is run, asked or decided."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum

import anyio
import anyio.lowlevel
from attrs import define, field, frozen

from punie.application.desk.turn_desk import RequestWatch
from punie.application.replay.recording import Joined, RecordedCall, RecordedTurn, Recording, call_key
from punie.application.sessions.gathering import EntryGatherer
from punie.application.tools.session.call_tool import CallTool
from punie.domain.session.events import (
    CompactionChanged,
    ContextUsed,
    RequestBegun,
    RequestEnded,
    SessionEvent,
    TextDelta,
    ThoughtDelta,
    ToolCallAnnounced,
    TurnEnded,
    UsageChanged,
)
from punie.domain.session.log import LoggedEvent
from punie.domain.tools.catalog import ToolCatalog
from punie.domain.tools.disclosure import CALL_TOOL
from punie.domain.tools.tool import ToolCall, ToolResult
from punie.domain.values.content import Prompt
from punie.domain.values.json_value import JsonValue
from punie.ports.engine import EventSink, ToolDoor


class Way(StrEnum):
    """How a replay differs from its record."""

    TOOL = "another tool"
    ARGUMENTS = "other arguments"
    ORDER = "another order"
    AGAIN = "a call made again"
    MORE = "a call more"
    LESS = "a call less"
    ENDING = "another end of the turn"


@frozen
class Divergence:
    """A place where the replay differs: in that turn, at that call of it, or at the turn's end where `call` is None."""

    way: Way
    turn: int
    call: int | None
    expected: JsonValue
    got: JsonValue


def shown_call(tool: str, arguments: JsonValue) -> JsonValue:
    """A call as a divergence shows it."""
    return {"tool": tool, "arguments": arguments}


@define
class CallShelf:
    """Answers each call from the record; lives as long as one replay.

    The recorded call in the same place answers, if it is the same one: the same tool with equal arguments. Another
    recorded call that is the same answers only where as many calls before it may have changed something as in the
    record, so that no answer is from before or after a change that the replay has not made, or made already. A call
    that may have changed something answers once.
    """

    recording: Recording
    _by_key: dict[str, list[RecordedCall]] = field(factory=dict[str, list[RecordedCall]], init=False)
    _used: set[int] = field(factory=set[int], init=False)
    _state: int = field(default=0, init=False)
    _turn: RecordedTurn = field(init=False)
    _next: int = field(default=0, init=False)
    made: int = field(default=0, init=False)
    """The calls of this turn that were answered."""

    spared_s: float = field(default=0.0, init=False)
    """The time that they took when they were recorded."""

    def __attrs_post_init__(self) -> None:
        for call in self.recording.calls:
            self._by_key.setdefault(call.key, []).append(call)

    def begin(self, turn: RecordedTurn) -> None:
        """The calls from here on are made in that turn."""
        self._turn, self._next, self.made, self.spared_s = turn, 0, 0, 0.0

    @property
    def expected(self) -> RecordedCall | None:
        """The recorded call in the place of the next one; None where the turn has no further."""
        calls = self._turn.calls
        while self._next < len(calls) and id(calls[self._next]) in self._used:
            self._next += 1
        return calls[self._next] if self._next < len(calls) else None

    def take(self, call: ToolCall) -> tuple[RecordedCall | None, Divergence | None]:
        """The recorded call that answers this one, and the difference, if there is one."""
        if call.name == CALL_TOOL:
            call = CallTool.meant(call)
        expected, key = self.expected, call_key(call.name, call.arguments)
        if expected is not None and expected.key == key:
            return self._answered(expected), None
        found, way = self._elsewhere(key), Way.MORE
        if found is not None:
            way = Way.AGAIN if id(found) in self._used else Way.ORDER
        elif expected is not None:
            way = Way.ARGUMENTS if expected.announced.tool == call.name else Way.TOOL
        wanted = None if expected is None else shown_call(expected.announced.tool, expected.announced.raw_input)
        place = self.made + 1 if expected is None else expected.number
        got = shown_call(call.name, call.arguments)
        return self._answered(found), Divergence(way, self._turn.number, place, wanted, got)

    def left(self) -> RecordedCall | None:
        """The first recorded call of the turn that was not made, one that may have changed something before others."""
        calls = [call for call in self._turn.calls if id(call) not in self._used]
        return next((call for call in calls if call.changes), calls[0] if calls else None)

    def _elsewhere(self, key: str) -> RecordedCall | None:
        """The same call in another place; one that was not made yet before one that was."""
        alike = [call for call in self._by_key.get(key, ()) if call.state == self._state]
        fresh = (call for call in alike if id(call) not in self._used)
        return next(fresh, next((call for call in alike if not call.changes), None))

    def _answered(self, call: RecordedCall | None) -> RecordedCall | None:
        if call is None:
            return None
        if id(call) not in self._used:
            self._used.add(id(call))
            self._state += call.changes
            if call.turn == self._turn.number:
                self._next = max(self._next, call.number)
        self.made += 1
        self.spared_s += call.elapsed_s
        return call


OF_THE_MODEL = (TextDelta, ThoughtDelta, UsageChanged, ContextUsed, RequestBegun, RequestEnded, CompactionChanged)
"""Events that come of asking a model; a replay has its own."""


@define(eq=False)
class ReplayedTurn(EventSink):
    """The log of one turn of a replay; lives as long as the turn.

    The model's events are new. All others are the record's, in the record's order: those of the calls that were made,
    and what the session did by itself.
    """

    turn: RecordedTurn
    entries: EntryGatherer
    said: bool = False
    """Whether the model said something since its last call."""

    _at: int = field(default=0, init=False)
    _made: int = field(default=0, init=False)
    _calls: set[str] = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._calls = {call.announced.call_id for call in self.turn.calls}
        self.entries.put(self.turn.accepted)
        self.catch_up()

    async def emit(self, event: SessionEvent) -> None:
        await anyio.lowlevel.checkpoint()
        self.catch_up()
        self.said = self.said or isinstance(event, (TextDelta, ThoughtDelta))
        self.entries.take(event)

    def note_call(self, call_id: str, last: int) -> None:
        """A recorded call of this turn was made; its entries end before the place `last`."""
        self._calls.discard(call_id)
        self._made, self.said = max(self._made, last), False

    def catch_up(self) -> None:
        """Add the entries of the calls that were made so far, and those behind them up to what the model does next."""
        self.copy(self._made)
        events = self.turn.events
        while self._at < len(events) and not self._waits(events[self._at]):
            self.copy(self._at + 1)

    def copy(self, until: int, *, whole: bool = False) -> None:
        """Add the record's entries before that place; `whole` with the model's own."""
        for event in self.turn.events[self._at : until]:
            call_id = getattr(event, "call_id", None)
            if whole or not (isinstance(event, OF_THE_MODEL) or call_id in self._calls):
                self.entries.take(event)
        self._at = max(self._at, until)

    def end(self, ended: TurnEnded | None) -> None:
        """Add the end of the turn, which a log that was cut off lacks, and what the session did behind it."""
        self.copy(self.turn.behind)
        if ended is not None:
            self.entries.end_turn(ended)
        self._at = self.turn.behind + 1
        self.copy(len(self.turn.events), whole=True)
        self.entries.close_message()

    def _waits(self, event: LoggedEvent) -> bool:
        return isinstance(event, (*OF_THE_MODEL, ToolCallAnnounced, TurnEnded))


@define(eq=False)
class ReplayDoor(ToolDoor):
    """Answers the calls of one turn from the record; lives as long as the turn.

    A call that the record does not answer ends the turn: `scope` is cancelled, and `stopped` is set. `beyond` says that
    the record was cut short there too. `differs` is told of each difference. `watch` measures the requests.
    """

    shelf: CallShelf
    log: ReplayedTurn
    watch: RequestWatch
    catalog: ToolCatalog
    differs: Callable[[Divergence], None]
    scope: anyio.CancelScope = field(factory=anyio.CancelScope, init=False)
    stopped: bool = field(default=False, init=False)
    beyond: bool = field(default=False, init=False)
    _joined: list[Joined] = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._joined = list(self.log.turn.joined)

    async def offered(self) -> ToolCatalog:
        await anyio.lowlevel.checkpoint()
        self.watch.begin()
        return self.catalog

    async def call(self, call: ToolCall) -> ToolResult:
        if not self.stopped:
            self.watch.interrupt()
            recorded = self._recorded(call)
            if recorded is not None:
                await anyio.lowlevel.checkpoint()
                return recorded.result
        self.stopped = True
        self.scope.cancel()
        await anyio.Event().wait()
        return ToolResult.cancelled()

    def _recorded(self, call: ToolCall) -> RecordedCall | None:
        """The recorded call that answers; at once, so that calls that are begun together are taken in their order."""
        turn, all_made = self.log.turn, self.shelf.expected is None
        recorded, divergence = self.shelf.take(call)
        self.beyond = recorded is None and all_made and turn.cut_short
        if divergence is not None and not self.beyond:
            self.differs(divergence)
        if recorded is not None and recorded.turn == turn.number:
            self.log.note_call(recorded.announced.call_id, recorded.last)
        return recorded

    async def answered(self, snapshot: Callable[[], bytes]) -> None:
        await anyio.lowlevel.checkpoint()

    def cut_short(self, call_id: str) -> ToolResult | None:
        return None

    def steered(self) -> tuple[Prompt, ...]:
        made, said = self.shelf.made, self.log.said
        return self._given(lambda one: one.calls < made or (one.calls == made and (said or not one.said)))

    def rest(self) -> Prompt | None:
        """The prompts that joined the turn behind its last request, as one."""
        given = self._given(lambda one: one.calls <= self.shelf.made)
        return Prompt(tuple(block for prompt in given for block in prompt.blocks)) if given else None

    def _given(self, now: Callable[[Joined], bool]) -> tuple[Prompt, ...]:
        given = tuple(one.prompt for one in self._joined if now(one))
        self._joined = [one for one in self._joined if not now(one)]
        return given
