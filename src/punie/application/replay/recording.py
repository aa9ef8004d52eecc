"""A recorded session as a replay reads it: its turns, and the calls that its model made, each with its answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TypeVar

from attrs import define, field, frozen

from punie.application.desk.card import SHOWN_LIMIT_BYTES
from punie.application.sessions.log_reading import Conversation
from punie.domain.permission.policy import HARMLESS_KINDS
from punie.domain.session.events import (
    CallFinished,
    HookRan,
    RequestBegun,
    TextDelta,
    ThoughtDelta,
    ToolCallAnnounced,
    ToolCallUpdated,
    TurnEnded,
)
from punie.domain.session.log import LogEntry, LoggedEvent, PromptAccepted, PromptFilled, PromptSteered, SituationTold
from punie.domain.session.prompt_files import typed_in
from punie.domain.session.transcript import INTERRUPTED, told_with
from punie.domain.session.turn import StopReason
from punie.domain.tools.execution import cut
from punie.domain.tools.tool import ToolOutcome, ToolResult
from punie.domain.values.content import Prompt, ResultContent, Text
from punie.domain.values.json_value import JsonValue, json_text
from punie.ports.sessions import SessionStore

E = TypeVar("E", RequestBegun, SituationTold)

MOST_ENTRIES = 100_000
MOST_CHARS = 256 * 1_048_576
"""A session is in memory while it is replayed; a longer one is refused."""


class NoReplayError(Exception):
    """The session cannot be replayed; the message says why."""


def call_key(tool: str, arguments: JsonValue) -> str:
    """Text that is equal for two calls of one tool with equal arguments, in whatever order the keys are."""
    return f"{tool} {json_text(arguments)}"


@define(eq=False, slots=False)
class RecordedCall:
    """A call that the model made, with its place: `number` counts from 1 within the turn, `turn` within the session.

    `state` is the number of calls before it that may have changed something. `last` is the place behind its last entry
    among those of its turn. `elapsed_s` is the time from its card to its end.
    """

    announced: ToolCallAnnounced
    turn: int
    number: int
    state: int = 0
    finished: CallFinished | None = None
    content: tuple[ResultContent, ...] = ()
    output: JsonValue = None
    last: int = 0
    elapsed_s: float = 0.0

    @cached_property
    def key(self) -> str:
        """As of `call_key`."""
        return call_key(self.announced.tool, self.announced.raw_input)

    @property
    def changes(self) -> bool:
        """Whether the call may have changed something: it was not denied, and its kind does more than look."""
        denied = self.finished is not None and self.finished.outcome is ToolOutcome.DENIED
        return self.announced.kind not in HARMLESS_KINDS and not denied

    @property
    def result(self) -> ToolResult:
        """The result as the model was told it, with the structured one where the log has that."""
        if self.finished is None:
            return ToolResult.cancelled(INTERRUPTED)
        told = self.finished.for_model
        plain = self.output is None or json_text(self.output) == json_text({"output": cut(told, SHOWN_LIMIT_BYTES)})
        content = self.content or (Text(told),)
        return ToolResult(
            self.finished.outcome, content, structured=None if plain else self.output, for_model=told,
            code=None if self.finished.outcome is ToolOutcome.SUCCEEDED else self.finished.outcome.value,
        )  # fmt: skip


@frozen
class Joined:
    """A prompt that joined the turn: behind `calls` of its calls, and where `said` behind words that followed them."""

    prompt: Prompt
    calls: int
    said: bool


@define(eq=False, slots=False)
class RecordedTurn:
    """One turn: `events` are the entries behind its prompt, up to the next turn's. `number` counts from 1."""

    number: int
    accepted: PromptAccepted
    events: list[LoggedEvent] = field(factory=list[LoggedEvent])
    calls: list[RecordedCall] = field(factory=list[RecordedCall])

    @cached_property
    def behind(self) -> int:
        """The place of the turn's end among its entries, or behind all of them."""
        ends = (place for place, event in enumerate(self.events) if isinstance(event, TurnEnded))
        return next(ends, len(self.events))

    @property
    def ended(self) -> TurnEnded | None:
        """The end of the turn; None where the log has none."""
        end = self.events[self.behind] if self.behind < len(self.events) else None
        return end if isinstance(end, TurnEnded) else None

    @property
    def cut_short(self) -> bool:
        """Whether the turn failed or was cancelled, so that the log does not say how it would have gone on."""
        return self.ended is None or self.ended.stop_reason in {None, StopReason.CANCELLED}

    @cached_property
    def commands_punie(self) -> bool:
        """Whether the prompt was a command of Punie's own, so that no model was asked."""
        filled = any(isinstance(event, PromptFilled) for event in self.events)
        return typed_in(self.accepted.prompt) is not None and not filled and not self.calls

    def prompt(self, instead: Prompt | None = None) -> Prompt:
        """The prompt as the model had it, with Punie's note before it; `instead` replaces a person's words."""
        prompt, note = instead or self.accepted.prompt, ""
        for event in self.events:
            if isinstance(event, PromptFilled) and instead is None:
                prompt = event.prompt
            elif isinstance(event, SituationTold):
                note = event.note
                break  # a later one is the news within the turn
        return told_with(note, prompt)

    @cached_property
    def joined(self) -> tuple[Joined, ...]:
        """The prompts that joined the turn, and what hooks asked for in it."""
        own, calls, said, joined = {call.announced.call_id for call in self.calls}, 0, False, list[Joined]()
        for event in self.events:
            match event:
                case ToolCallAnnounced(call_id) if call_id in own:
                    calls, said = calls + 1, False
                case TextDelta() | ThoughtDelta():
                    said = True
                case PromptSteered(_, prompt):
                    joined.append(Joined(prompt, calls, said))
                case HookRan(told=str() as told) if told:
                    joined.append(Joined(Prompt.of_text(told), calls, said))
                case _:
                    pass
        return tuple(joined)


@frozen(eq=False)
class Recording:
    """A recorded session; lives as long as its replays. `before` are the entries before its first turn."""

    session_id: str
    before: Sequence[LoggedEvent]
    turns: Sequence[RecordedTurn]

    @property
    def events(self) -> list[LoggedEvent]:
        """All entries, in order."""
        return [*self.before, *(event for turn in self.turns for event in (turn.accepted, *turn.events))]

    @property
    def calls(self) -> tuple[RecordedCall, ...]:
        """The calls of all turns, in order."""
        return tuple(call for turn in self.turns for call in turn.calls)

    def first(self, kind: type[E]) -> E | None:
        """The first event of that kind, which says what the model was offered and told."""
        return next((event for event in self.events if isinstance(event, kind)), None)


async def read_recording(store: SessionStore, session_id: str, size: Callable[[LoggedEvent], int]) -> Recording:
    """Read a session's conversation; `size` gives the characters of an entry.

    Raises `SessionStoreError`, and `NoReplayError` for a session without turns, or one that is too long.
    """
    reader, entries, chars = _Reader(), 0, 0
    async for page in Conversation(store, session_id):
        for entry in page:
            entries, chars = entries + 1, chars + size(entry.event)
            if entries > MOST_ENTRIES or chars > MOST_CHARS:
                raise NoReplayError(
                    f"the session is longer than {MOST_ENTRIES:,} entries or {MOST_CHARS // 1_048_576} MiB"
                )
            reader.take(entry)
    if not reader.turns:
        raise NoReplayError("no prompt was sent in this session")
    reader.number_states()
    return Recording(session_id, reader.before, reader.turns)


@define
class _Reader:
    """Takes a log's entries in order; lives until the log is read."""

    before: list[LoggedEvent] = field(factory=list[LoggedEvent], init=False)
    turns: list[RecordedTurn] = field(factory=list[RecordedTurn], init=False)
    _open: dict[str, tuple[RecordedCall, float]] = field(factory=dict[str, tuple[RecordedCall, float]], init=False)

    def take(self, entry: LogEntry) -> None:
        event = entry.event
        if isinstance(event, PromptAccepted):
            self.turns.append(RecordedTurn(len(self.turns) + 1, event))
            self._open.clear()
        elif not self.turns:
            self.before.append(event)
        else:
            self.turns[-1].events.append(event)
            self._call(event, entry.at)

    def _call(self, event: LoggedEvent, at: float) -> None:
        turn = self.turns[-1]
        match event:
            case ToolCallAnnounced(call_id) if not event.inner:
                call = RecordedCall(event, turn.number, len(turn.calls) + 1, last=len(turn.events))
                turn.calls.append(call)
                self._open[call_id] = call, at
            case ToolCallUpdated(call_id) | CallFinished(call_id) if call_id in self._open:
                call, began = self._open[call_id]
                call.last = len(turn.events)
                if isinstance(event, CallFinished):
                    call.finished, call.elapsed_s = event, max(0.0, at - began)
                elif event.status is not None and event.status.terminal:
                    call.content, call.output = event.content or (), event.raw_output
            case _:
                pass

    def number_states(self) -> None:
        """Say of each call how many calls before it may have changed something, which is known once all are read."""
        changed = 0
        for turn in self.turns:
            for call in turn.calls:
                call.state = changed
                changed += call.changes
