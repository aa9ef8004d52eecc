"""From a session's log to its timeline, a turn at a time, in bounded memory whatever the log holds."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

from attrs import define, evolve, field

from punie.domain.session.elicitation import ASK_USER
from punie.domain.session.events import (
    CallFinished,
    CompactionChanged,
    ContextUsed,
    HistoryForgotten,
    HookEnding,
    HookRan,
    ModeChanged,
    ModelChanged,
    PermissionAnswered,
    PermissionAsked,
    PlanChanged,
    RequestEnded,
    TextDelta,
    ThoughtDelta,
    ToolCallAnnounced,
    ToolCallUpdated,
    TurnEnded,
    UsageChanged,
)
from punie.domain.session.log import (
    LogEntry,
    PromptAccepted,
    PromptFilled,
    PromptSteered,
    Rewound,
    SituationTold,
    is_taken_back,
)
from punie.domain.session.open_turn import SHORT_CHARS, Held, OpenTurn, Room
from punie.domain.session.timeline import (
    Argument,
    Call,
    Excerpt,
    PlanSeen,
    Question,
    Remark,
    Request,
    Speech,
    TurnTimeline,
)
from punie.domain.tools.execution import CallStatus
from punie.domain.values.content import Diff, Image, Prompt, ResultContent, Text
from punie.domain.values.display import counted, one_line
from punie.domain.values.json_value import JsonValue, thaw
from punie.domain.values.line_changes import LineChanges, changed_lines

REMARKS_BETWEEN = 20
"""The most remarks on the time between two turns: the latest ones."""

LINES_A_CHANGE = 400
FILES_A_CALL = 20
PLACES_A_CALL = 20
ARGUMENTS_A_CALL = 30
CHANGE_WEIGHT = 40_000
TITLE_CHARS = 300
OPEN_CALLS = 10_000
"""The most calls without an end that are remembered; no log of Punie has more."""


@define
class TimelineBuilder:
    """Builds turns from the entries of a log in order: `take` returns one once it is over, `end` the one that is not.

    `turns` is the number of turns before the first entry, and `rewinds` what a person took back.
    """

    room: Room = field(factory=Room)
    turns: int = 0
    rewinds: Sequence[Rewound] = ()
    _turn: OpenTurn | None = field(default=None, init=False)
    _between: deque[Remark] = field(factory=lambda: deque[Remark](maxlen=REMARKS_BETWEEN), init=False)
    _between_since: int | None = field(default=None, init=False)
    _at: float = field(default=0.0, init=False)

    def take(self, entry: LogEntry) -> TurnTimeline | None:
        """Take the next entry; returns the turn that it ends, if any."""
        event, self._at = entry.event, entry.at
        if isinstance(event, PromptAccepted):
            before = self.end()
            self._begin(entry, event)
            return before
        turn = self._turn
        if turn is None:
            self._beside(entry)
            return None
        turn.ended = max(turn.ended, entry.at)
        if isinstance(event, TurnEnded):
            turn.seen = evolve(turn.seen, is_over=True, stop_reason=event.stop_reason, failure=_cut(event.failure))
            return self.end()
        self._within(turn, entry)
        return None

    def end(self) -> TurnTimeline | None:
        """The turn that the log ends in; None where it ends between two."""
        turn, self._turn = self._turn, None
        return None if turn is None else turn.timeline()

    def _begin(self, entry: LogEntry, event: PromptAccepted) -> None:
        self.turns += 1
        first = entry.sequence if self._between_since is None else self._between_since
        seen = TurnTimeline(
            number=self.turns, turn_id=event.turn_id, prompt=_prompted(event.prompt, self.room.text_chars),
            began=entry.at, ended=entry.at, first_sequence=first, model=_cut(event.model), effort=event.effort,
            before=tuple(self._between), is_taken_back=is_taken_back(entry.sequence, self.rewinds),
        )  # fmt: skip
        self._turn = OpenTurn(seen, self.room, entry.at)
        self._turn.chars += len(seen.prompt.text)
        self._between.clear()
        self._between_since = None

    def _beside(self, entry: LogEntry) -> None:
        """Keep an event between two turns."""
        remark = _remark(entry)
        if remark is not None:
            self._between_since = entry.sequence if self._between_since is None else self._between_since
            self._between.append(remark)

    def _within(self, turn: OpenTurn, entry: LogEntry) -> None:
        match entry.event:
            case TextDelta() | ThoughtDelta():
                _said(turn, entry.at, entry.event)
            case RequestEnded():
                _requested(turn, entry.at, entry.event)
            case UsageChanged(usage):
                turn.seen = evolve(turn.seen, usage=usage)
            case ContextUsed(used, size):
                turn.seen = evolve(turn.seen, context_tokens=(used, size))
            case PromptFilled(prompt):
                turn.seen = evolve(turn.seen, filled=_prompted(prompt, self.room.text_chars))
            case PlanChanged(plan):
                turn.add(PlanSeen(entry.at, tuple(evolve(step, content=_cut(step.content)) for step in plan[:100])))
            case _:
                self._of_a_call(turn, entry)

    def _of_a_call(self, turn: OpenTurn, entry: LogEntry) -> None:
        match entry.event:
            case ToolCallAnnounced():
                _announced(turn, entry.at, entry.event)
            case ToolCallUpdated(call_id):
                _updated(turn, entry.at, entry.event, turn.calls.get(call_id))
            case CallFinished(call_id):
                _finished(turn, entry.event, turn.calls.get(call_id))
            case PermissionAsked(call_id):
                _asked(turn, entry.at, entry.event, turn.calls.get(call_id))
            case PermissionAnswered(call_id):
                _answered(turn, entry.at, entry.event, turn.calls.get(call_id))
            case _:
                remark = _remark(entry)
                if remark is not None:
                    turn.add(remark)


def _cut(text: str | None) -> str | None:
    return None if text is None else text[:TITLE_CHARS]


def _prompted(prompt: Prompt, limit: int) -> Excerpt:
    pictures = sum(isinstance(block, Image) for block in prompt.blocks)
    shown = f"\n[{counted(pictures, 'picture')}]" if pictures else ""
    cut = Excerpt.of(prompt.text, limit)
    return evolve(cut, text=(cut.text + shown).strip())


def _said(turn: OpenTurn, at: float, event: TextDelta | ThoughtDelta) -> None:
    """The next piece of a message: long ones are several entries."""
    is_thought, message = isinstance(event, ThoughtDelta), turn.message
    last = (turn.last or turn.first)[-1].step if turn.last or turn.first else None
    if message == (is_thought, event.message_id) and isinstance(last, Speech):
        whole = last.text
        more = turn.excerpt(event.text) if len(whole.text) < turn.room.text_chars else Excerpt("", len(event.text))
        text = Excerpt(whole.text + more.text, whole.left_out + more.left_out)
        (turn.last or turn.first)[-1].step = evolve(last, text=text)
        return
    turn.add(Speech(at, turn.excerpt(event.text), is_thought))
    turn.message = (is_thought, event.message_id)


def _requested(turn: OpenTurn, at: float, event: RequestEnded) -> None:
    began = max(turn.seen.began, at - max(0.0, event.elapsed_s))
    turn.timed(turn.model, began, at)
    turn.seen = evolve(turn.seen, requests=turn.seen.requests + max(1, event.usage.requests))
    model, broke = (
        one_line(event.model, TITLE_CHARS),
        tuple(one_line(str(one), TITLE_CHARS) for one in event.broke[:20]),
    )
    turn.add_before_speech(Request(began, at, model, event.usage, event.first_s, event.ending, broke))


def _announced(turn: OpenTurn, at: float, event: ToolCallAnnounced) -> None:
    call = Call(
        event.call_id[:TITLE_CHARS], event.tool[:TITLE_CHARS], (event.title or event.tool)[:TITLE_CHARS], event.kind,
        at,
        arguments=tuple(_arguments(turn, event.raw_input)),
        locations=tuple(path[:TITLE_CHARS] for path in event.locations[:PLACES_A_CALL]),
    )  # fmt: skip
    turn.calls[event.call_id] = turn.add(call)
    if len(turn.calls) > OPEN_CALLS:
        del turn.calls[next(iter(turn.calls))]


def _arguments(turn: OpenTurn, given: JsonValue) -> Iterator[Argument]:
    if given is None:
        return
    named = given.items() if isinstance(given, Mapping) else (("", given),)
    for name, value in islice(named, ARGUMENTS_A_CALL):
        text = value if isinstance(value, str) else json.dumps(thaw(value), indent=2, ensure_ascii=False)
        yield Argument(name[:TITLE_CHARS], turn.excerpt(text))


def _updated(turn: OpenTurn, at: float, event: ToolCallUpdated, held: Held | None) -> None:
    if held is None or not isinstance(held.step, Call):
        return
    call = held.step
    if event.status is CallStatus.IN_PROGRESS:
        held.step = evolve(call, began=at)
    elif event.status is not None and event.status.terminal:
        del turn.calls[event.call_id]
        if call.began is not None:
            turn.timed(turn.waiting if call.tool == ASK_USER else turn.tools, call.began, at)
        seen = evolve(call, ended=at)
        held.step = seen if held.gone else evolve(seen, changes=_changes(turn, event.content or ()))
        if not call.result.text and not held.gone:
            texts = (part.text for part in event.content or () if isinstance(part, Text))
            held.step = evolve(held.step, result=turn.excerpt("\n".join(texts)))


def _finished(turn: OpenTurn, event: CallFinished, held: Held | None) -> None:
    turn.outcomes[event.outcome] += 1
    if held is not None and isinstance(held.step, Call):
        result = Excerpt("") if held.gone else turn.excerpt(event.for_model)
        held.step = evolve(held.step, outcome=event.outcome, result=result)


def _asked(turn: OpenTurn, at: float, event: PermissionAsked, held: Held | None) -> None:
    turn.seen = evolve(turn.seen, questions=turn.seen.questions + 1)
    if held is not None and isinstance(held.step, Call):
        options = tuple(option[:TITLE_CHARS] for option in event.options[:8])
        question = Question(at, event.reason[:1_000], options)
        held.step = evolve(held.step, questions=(*held.step.questions[-8:], question))


def _answered(turn: OpenTurn, at: float, event: PermissionAnswered, held: Held | None) -> None:
    if held is None or not isinstance(held.step, Call) or not held.step.questions:
        return
    *others, question = held.step.questions
    turn.timed(turn.waiting, question.asked, at)
    settled = evolve(
        question, answered=at, verdict=event.verdict, why=event.reason[:1_000], answered_by=event.answered_by,
        choice=_cut(event.choice),
    )  # fmt: skip
    held.step = evolve(held.step, questions=(*others, settled))


def _changes(turn: OpenTurn, content: tuple[ResultContent, ...]) -> tuple[LineChanges, ...]:
    diffs = [part for part in content if isinstance(part, Diff)][:FILES_A_CALL]
    changes: list[LineChanges] = []
    for diff in diffs:
        if turn.chars < turn.room.turn_chars:
            changes.append(changed_lines(diff, LINES_A_CHANGE))
        turn.chars += min(len(diff.old_text or "") + len(diff.new_text), CHANGE_WEIGHT)
    return tuple(changes)


_HOOKS = {
    HookEnding.DONE: "had no objection.",
    HookEnding.ASKED: "wants a person to be asked",
    HookEnding.BLOCKED: "refused",
    HookEnding.FAILED: "failed",
}


def _remark(entry: LogEntry) -> Remark | None:
    match entry.event:
        case ModeChanged(mode):
            return Remark(entry.at, f"The mode is {mode.value} from here.")
        case ModelChanged(model, effort):
            hard = "" if effort is None else f", thinking effort {effort.value}"
            return Remark(entry.at, f"The model is {one_line(model, TITLE_CHARS)} from here{hard}.")
        case CompactionChanged(_, _, summary):
            return Remark(entry.at, "What was said before was summarised.", Excerpt.of(summary or "", SHORT_CHARS * 20))
        case SituationTold(note) if note:
            return Remark(entry.at, f"The model was told: {one_line(note, SHORT_CHARS * 5)}")
        case HookRan(event, command, ending, elapsed_s, _, reason):
            what = one_line(f"{event}: {command}", TITLE_CHARS)
            why = "" if ending is HookEnding.DONE else f": {one_line(reason, TITLE_CHARS)}"
            return Remark(entry.at, f"The hook {what} ran for {elapsed_s:.2f} s and {_HOOKS[ending]}{why}")
        case _:
            return _of_the_person(entry)


def _of_the_person(entry: LogEntry) -> Remark | None:
    match entry.event:
        case PromptSteered(_, prompt):
            return Remark(entry.at, "The person said meanwhile:", _prompted(prompt, SHORT_CHARS * 20))
        case Rewound(until=0):
            return Remark(entry.at, "A person took changes of files back; the conversation stayed.")
        case Rewound(turns=turns):
            left = counted(turns, "turn is", "turns are")
            return Remark(entry.at, f"A person took the conversation back: {left} left of it.")
        case HistoryForgotten():
            return Remark(entry.at, "The model forgot all that was said before.")
        case _:
            return None
