"""The timeline of a session: the values that a trace shows, with as much text as a page has room for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from operator import add
from typing import TypeAlias

from attrs import astuple, field, frozen

from punie.domain.model.provider import Effort
from punie.domain.permission.rules import AnsweredBy, Verdict
from punie.domain.session.events import RequestEnding
from punie.domain.session.log import SessionSummary
from punie.domain.session.turn import Plan, StopReason, Usage
from punie.domain.tools.tool import ToolKind, ToolOutcome
from punie.domain.values.line_changes import LineChanges

Interval: TypeAlias = tuple[float, float]
"""From when to when, in seconds since the epoch."""


@frozen
class Excerpt:
    """A text as far as there is room for it; `left_out` is the number of characters that are not in it."""

    text: str
    left_out: int = 0

    @classmethod
    def of(cls, text: str, limit: int) -> Excerpt:
        """The text, or its beginning."""
        return cls(text[:limit], max(0, len(text) - limit))


@frozen
class Speech:
    """A message of the model, or a part of what it thought."""

    at: float
    text: Excerpt
    is_thought: bool = False


@frozen
class Request:
    """A request to the model; `broke` says what it began otherwise with than the one before."""

    began: float
    ended: float
    model: str
    usage: Usage
    first_s: float | None = None
    ending: RequestEnding = RequestEnding.DONE
    broke: tuple[str, ...] = ()


@frozen
class Question:
    """A question to a person with its final `verdict`; `answered` is None where no answer came."""

    asked: float
    reason: str
    options: tuple[str, ...] = ()
    answered: float | None = None
    verdict: Verdict | None = None
    why: str = ""
    answered_by: AnsweredBy | None = None
    choice: str | None = None


@frozen
class Argument:
    """One argument of a call: a text as it is, anything else as JSON. `name` is empty where they are no object."""

    name: str
    value: Excerpt


@frozen
class Call:
    """A tool call: announced, let start at `began` (None: never), and over at `ended` (None: not in this log)."""

    call_id: str
    tool: str
    title: str
    kind: ToolKind
    announced: float
    began: float | None = None
    ended: float | None = None
    outcome: ToolOutcome | None = None
    arguments: tuple[Argument, ...] = ()
    result: Excerpt = Excerpt("")
    changes: tuple[LineChanges, ...] = ()
    locations: tuple[str, ...] = ()
    questions: tuple[Question, ...] = ()


@frozen
class PlanSeen:
    """The agent's plan from then on."""

    at: float
    plan: Plan


@frozen
class Remark:
    """Any other event, in words; `detail` may be long."""

    at: float
    words: str
    detail: Excerpt = Excerpt("")


Step: TypeAlias = Speech | Request | Call | PlanSeen | Remark


@frozen
class Shares:
    """The use of a turn's time, in seconds; the four add up to all of it.

    Where several intervals overlap, a tool's work counts before the model's, and waiting for a person last.
    """

    tools_s: float = 0.0
    model_s: float = 0.0
    waiting_s: float = 0.0
    other_s: float = 0.0

    @property
    def total_s(self) -> float:
        """The whole time."""
        return self.tools_s + self.model_s + self.waiting_s + self.other_s

    def __add__(self, more: Shares) -> Shares:
        return Shares(*map(add, astuple(self), astuple(more)))


@frozen
class TurnTimeline:
    """One turn. `ended` is the time of its latest entry, which is its end only where `is_over`.

    `steps` are in the order in which they began; `left_out` of them are missing behind the first `gap_at`. `before` are
    the remarks since the turn before. `weight` is roughly the number of characters of its texts, and `first_sequence`
    the number of its first entry in the log. A turn that `is_taken_back` is no part of the conversation any more.
    """

    number: int
    turn_id: str
    prompt: Excerpt
    began: float
    ended: float
    first_sequence: int
    model: str | None = None
    effort: Effort | None = None
    is_over: bool = False
    stop_reason: StopReason | None = None
    failure: str | None = None
    usage: Usage | None = None
    context_tokens: tuple[int, int | None] | None = None
    steps: tuple[Step, ...] = ()
    left_out: int = 0
    gap_at: int = 0
    before: tuple[Remark, ...] = ()
    filled: Excerpt | None = None
    shares: Shares = Shares()
    requests: int = 0
    questions: int = 0
    calls: Mapping[ToolOutcome, int] = field(factory=dict[ToolOutcome, int])
    weight: int = 0
    is_taken_back: bool = False


@frozen
class Totals:
    """The sums over a session's turns; `cost_usd` in `usage` is None where no turn's cost was known."""

    turns: int = 0
    requests: int = 0
    questions: int = 0
    calls: Counter[ToolOutcome] = field(factory=Counter[ToolOutcome])
    usage: Usage = Usage()
    shares: Shares = field(factory=Shares)
    failed: int = 0

    def with_turn(self, turn: TurnTimeline) -> Totals:
        """The sums with one more turn."""
        used = turn.usage or Usage()
        return Totals(
            self.turns + 1,
            self.requests + turn.requests,
            self.questions + turn.questions,
            self.calls + Counter(turn.calls),
            self.usage + used,
            self.shares + turn.shares,
            self.failed + (turn.is_over and turn.stop_reason is None),
        )


@frozen
class SessionOutline:
    """The result of the first reading of a log: the sums, and the latest turns without their steps.

    The turns from `full_from` on are shown in full.
    """

    summary: SessionSummary
    totals: Totals
    turns: tuple[TurnTimeline, ...]
    full_from: int

    @property
    def left_out(self) -> int:
        """The number of turns that are not even outlined."""
        return self.totals.turns - len(self.turns)


def shares_of(
    turn: Interval, tools: Sequence[Interval], model: Sequence[Interval], waiting: Sequence[Interval]
) -> Shares:
    """The use of a turn's time, by the intervals of each kind."""
    at_tools = _covered(turn, tools)
    with_model = _covered(turn, (*tools, *model))
    with_waiting = _covered(turn, (*tools, *model, *waiting))
    whole = max(0.0, turn[1] - turn[0])
    return Shares(at_tools, with_model - at_tools, with_waiting - with_model, max(0.0, whole - with_waiting))


def _covered(turn: Interval, intervals: Sequence[Interval]) -> float:
    """The seconds of the turn that at least one of the intervals covers."""
    covered, reached = 0.0, turn[0]
    for start, end in sorted(intervals):
        start, end = max(start, reached), min(end, turn[1])  # noqa: PLW2901 - the part that counts
        if end > start:
            covered += end - start
            reached = end
    return covered
