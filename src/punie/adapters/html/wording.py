"""Numbers, moments and names as a page shows them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

from punie.domain.permission.rules import AnsweredBy, Verdict
from punie.domain.session.timeline import Question, TurnTimeline
from punie.domain.session.turn import StopReason
from punie.domain.tools.tool import ToolKind, ToolOutcome

KINDS: Mapping[ToolKind, str] = {
    ToolKind.READ: "Read",
    ToolKind.EDIT: "Edit",
    ToolKind.DELETE: "Delete",
    ToolKind.MOVE: "Move",
    ToolKind.SEARCH: "Search",
    ToolKind.EXECUTE: "Run",
    ToolKind.THINK: "Think",
    ToolKind.FETCH: "Fetch",
    ToolKind.SWITCH_MODE: "Mode",
    ToolKind.OTHER: "Tool",
}

OUTCOMES: Mapping[ToolOutcome | None, str] = {
    ToolOutcome.SUCCEEDED: "done",
    ToolOutcome.FAILED: "failed",
    ToolOutcome.DENIED: "denied",
    ToolOutcome.CANCELLED: "cancelled",
    None: "not finished",
}

_ENDINGS: Mapping[StopReason, str] = {
    StopReason.END_TURN: "done",
    StopReason.CANCELLED: "cancelled",
    StopReason.MAX_TOKENS: "no room for more",
    StopReason.MAX_TURN_REQUESTS: "too many requests",
    StopReason.REFUSAL: "refused",
}


def duration(seconds: float) -> str:
    """A duration in two units at most."""
    if seconds < 0.0005:
        return "0 ms"
    if seconds < 0.9995:
        return f"{seconds * 1000:.0f} ms" if seconds >= 0.01 else f"{seconds * 1000:.1f} ms"
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    minutes, left = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {left} s" if left else f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    return f"{hours:,} h {minutes} min" if minutes else f"{hours:,} h"


def number(count: int) -> str:
    """A count with its thousands apart."""
    return f"{count:,}"


def counted(count: int, one: str, many: str = "") -> str:
    """A count with its noun."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def dollars(cost_usd: float | None) -> str:
    """A cost; below a dollar to a hundredth of a cent."""
    if cost_usd is None:
        return "not known"
    return f"${cost_usd:,.2f}" if cost_usd >= 1 else f"${cost_usd:.4f}"


def moment(seconds: float) -> str:
    """A moment in UTC, for a person."""
    return _at(seconds, "%Y-%m-%d %H:%M:%S UTC")


def clock(seconds: float) -> str:
    """A moment without its day."""
    return _at(seconds, "%H:%M:%S")


def stamp(seconds: float) -> str:
    """A moment for a program."""
    return _at(seconds, "%Y-%m-%dT%H:%M:%SZ")


def _at(seconds: float, form: str) -> str:
    try:
        return datetime.fromtimestamp(seconds, UTC).strftime(form)
    except (OverflowError, OSError, ValueError):
        return str(seconds)


def share(part: float, whole: float) -> str:
    """A part of a whole in per cent."""
    if whole <= 0 or part <= 0:
        return "0 %"
    exact = 100 * part / whole
    return "under 1 %" if exact < 1 else f"{exact:.0f} %"


def ending_of(turn: TurnTimeline) -> str:
    """The end of a turn in words."""
    if not turn.is_over:
        return "not finished"
    return "failed" if turn.stop_reason is None else _ENDINGS[turn.stop_reason]


def is_trouble(turn: TurnTimeline) -> bool:
    """Whether a turn did not come to its own end."""
    return turn.stop_reason is not StopReason.END_TURN


def answer_of(question: Question) -> str:
    """The answer to a question in words."""
    if question.answered is None:
        return "never answered"
    if question.answered_by is AnsweredBy.PERSON:
        return f"answered “{question.choice}”" if question.choice else "answered"
    how = "denied" if question.verdict is Verdict.DENY else "allowed"
    if question.answered_by is AnsweredBy.NOBODY:
        return f"{how}, nobody answered"
    return f"{how} by the rules after the answer"
