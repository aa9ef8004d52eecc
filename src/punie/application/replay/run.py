"""A replay: the turns of a recorded session, run again by a model, or told again as they are."""

from __future__ import annotations

import uuid
from collections.abc import Mapping

import anyio.lowlevel
from attrs import define, evolve, field, frozen

from punie.application.desk.turn_desk import RequestWatch
from punie.application.replay.door import CallShelf, Divergence, ReplayDoor, ReplayedTurn, Way, shown_call
from punie.application.replay.recording import RecordedTurn, Recording
from punie.application.sessions.gathering import EntryGatherer
from punie.application.tools.own_tools import DESCRIPTORS
from punie.application.turns.model_shelf import ContextGauge
from punie.application.turns.run_turn import FAILURE_CHARS, TurnEvents
from punie.domain.errors import EngineError
from punie.domain.session.events import HistoryForgotten, RequestBegun, RequestEnding, ToolCallAnnounced, TurnEnded
from punie.domain.session.log import LoggedEvent, SituationTold
from punie.domain.session.turn import StopReason, Turn, TurnLimits, Usage
from punie.domain.tools.catalog import ToolCatalog
from punie.domain.tools.tool import NAME_PATTERN, ToolCall, ToolDescriptor
from punie.domain.values.content import Prompt
from punie.domain.values.display import one_line
from punie.domain.values.json_value import JsonValue
from punie.ports.engine import EngineSession, HistoryKeeper
from punie.ports.machine import Clock


@frozen
class AskedModel:
    """The model that a replay asks, with what the session's turns give it; lives as long as the replay."""

    name: str
    session: EngineSession
    catalog: ToolCatalog
    instructions: str = ""
    limits: TurnLimits = field(factory=TurnLimits)
    context_tokens: int | None = None


@define
class Replayed:
    """The outcome of a replay: its log, and the differences in order. `turns` is the number of turns that were begun.

    The log can be compared with the record up to the place `until`: a turn, and a number of calls of it.
    `whole` is False where the replay ended before the record did, because the record has no answer to a call.
    `spared_s` is the time that the answered calls took when they were recorded.
    """

    divergences: list[Divergence] = field(factory=list[Divergence], init=False)
    events: list[LoggedEvent] = field(factory=list[LoggedEvent], init=False)
    turns: int = field(default=0, init=False)
    until: tuple[int, int] = field(default=(0, 0), init=False)
    whole: bool = field(default=True, init=False)
    calls: int = field(default=0, init=False)
    spared_s: float = field(default=0.0, init=False)
    usage: Usage = field(factory=Usage, init=False)


def recorded_tools(recording: Recording) -> tuple[ToolCatalog, tuple[str, ...]]:
    """The tools that the session's model was offered, and the names of those whose definition is not known any more.

    The names are the record's, the definitions today's; tools of others have neither description nor parameters. Where
    the log does not say which tools there were, they are those that it calls.
    """
    kinds = {call.announced.tool: call.announced.kind for call in recording.calls}
    sent, told = recording.first(RequestBegun), recording.first(SituationTold)
    names: tuple[str, ...] = tuple(kinds)
    if sent is not None and sent.tools:
        names = tuple(name for name, _ in sent.tools)
    elif told is not None and told.now.tools:
        names = told.now.tools
    usable = [name for name in dict.fromkeys(names) if NAME_PATTERN.fullmatch(name)]
    known: Mapping[str, ToolDescriptor] = DESCRIPTORS
    tools = (known[name] if name in known else ToolDescriptor(name, kinds.get(name, "other")) for name in usable)
    return ToolCatalog(tools), tuple(name for name in usable if name not in known)


@define
class Replay:
    """One replay of a recording; `run` it once. Without `asked` the model's words and calls are the record's too.

    `prompt` takes the place of the session's first prompt to a model.
    """

    recording: Recording
    clock: Clock
    asked: AskedModel | None = None
    prompt: Prompt | None = None
    done: Replayed = field(factory=Replayed, init=False)
    _entries: EntryGatherer = field(init=False)
    _shelf: CallShelf = field(init=False)
    _watch: RequestWatch = field(init=False)
    _gauge: ContextGauge = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._entries, self._shelf = EntryGatherer(self.clock, 1), CallShelf(self.recording)
        self._watch = RequestWatch(self.clock, "" if self.asked is None else self.asked.name)
        self._gauge = ContextGauge(None if self.asked is None else self.asked.context_tokens)

    async def run(self) -> Replayed:
        """Replay turn after turn, as far as the record answers. Raises `EngineError` where the model does not."""
        for event in self.recording.before:
            self._entries.take(event)
        for turn in self.recording.turns:
            self._shelf.begin(turn)
            log = ReplayedTurn(turn, self._entries)
            catalog = ToolCatalog() if self.asked is None else self.asked.catalog
            door = ReplayDoor(self._shelf, log, self._watch, catalog, self.done.divergences.append)
            self.done.turns += 1
            if self.asked is None or turn.commands_punie:
                await self._told(turn, door)
            elif not await self._asked(turn, door, self.asked):
                self.done.whole = False
                break
        self.done.events = [entry.event for entry in self._entries.waiting]
        return self.done

    async def _told(self, turn: RecordedTurn, door: ReplayDoor) -> None:
        """Tell the model's part as the record has it; its calls are answered like any."""
        own = {id(call.announced) for call in turn.calls}
        for place, event in enumerate(turn.events[: turn.behind], start=1):
            if isinstance(event, ToolCallAnnounced) and id(event) in own:
                await door.call(ToolCall(event.call_id, event.tool, event.raw_input))
            door.log.copy(place, whole=True)
            keeper = None if self.asked is None else self.asked.session
            if isinstance(event, HistoryForgotten) and isinstance(keeper, HistoryKeeper):
                keeper.forget()
        door.log.end(turn.ended)
        self._count(turn, door)

    async def _asked(self, turn: RecordedTurn, door: ReplayDoor, asked: AskedModel) -> bool:
        """Ask the model; returns whether the replay can go on."""
        events = TurnEvents(door.log, self._gauge, anyio.lowlevel.checkpoint, self._watch)
        reason, failure = StopReason.CANCELLED, None
        try:
            with door.scope:
                reason = await self._run(turn, door, asked, events)
        except EngineError as error:
            if not door.stopped and not (turn.ended is not None and turn.ended.stop_reason is None):
                raise
            failure = None if door.stopped else one_line(str(error), FAILURE_CHARS)
        if failure is not None or door.stopped:
            await events.stop(RequestEnding.CANCELLED if failure is None else RequestEnding.FAILED)
        self.done.usage += events.usage
        self._gauge.end_turn()
        self._count(turn, door)
        ended = TurnEnded(None if failure is not None else reason, failure)
        door.log.end(ended)
        return door.beyond if door.stopped else self._compared(turn, ended)

    async def _run(self, turn: RecordedTurn, door: ReplayDoor, asked: AskedModel, events: TurnEvents) -> StopReason:
        accepted, prompt = turn.accepted, turn.prompt(self.prompt)
        self.prompt = None
        effort = accepted.effort if accepted.model == asked.name else None
        task = Turn(uuid.uuid4().hex, self.recording.session_id, prompt, asked.instructions, asked.limits, effort)
        while True:
            reason = await asked.session.run(task, tools=door, events=events)
            more = door.rest() if reason is StopReason.END_TURN else None
            if more is None:
                return reason
            events.before, task = events.usage, evolve(task, id=f"{task.id}-more", prompt=more)

    def _compared(self, turn: RecordedTurn, ended: TurnEnded) -> bool:
        """Compare the end of the turn; returns False where a change of the record was not made."""
        left = self._shelf.left()
        if left is not None:
            wanted = shown_call(left.announced.tool, left.announced.raw_input)
            self.done.divergences.append(Divergence(Way.LESS, turn.number, left.number, wanted, None))
        was = turn.ended
        if was is not None and not turn.cut_short and was.stop_reason is not ended.stop_reason:
            self.done.divergences.append(Divergence(Way.ENDING, turn.number, None, _ending(was), _ending(ended)))
        return left is None or not left.changes

    def _count(self, turn: RecordedTurn, door: ReplayDoor) -> None:
        self.done.calls += self._shelf.made
        self.done.until = (turn.number, self._shelf.made if door.stopped else len(turn.calls))
        self.done.spared_s += self._shelf.spared_s


def _ending(ended: TurnEnded) -> JsonValue:
    reason = None if ended.stop_reason is None else ended.stop_reason.value
    return {"stopReason": reason, "failure": ended.failure}
