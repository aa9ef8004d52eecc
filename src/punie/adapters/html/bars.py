"""Where the bars of a timeline lie: positions on an axis of a thousand steps.

They are drawn as SVG with attributes, because a page that allows no inline styles can place nothing by CSS.
"""

from __future__ import annotations

from collections.abc import Iterable

from attrs import frozen

from punie.domain.session.timeline import Call, Request, Shares, Step, TurnTimeline

AXIS = 1_000.0
SHORTEST = 4.0
"""What is too short to be seen is shown so long."""


@frozen
class Bar:
    """A piece of an axis: from `x` on, `width` long, drawn as its `look` says."""

    x: float
    width: float
    look: str


def _bar(turn: TurnTimeline, start: float, end: float, look: str) -> Bar:
    whole = max(turn.ended - turn.began, 1e-9)
    x = min(max((start - turn.began) / whole, 0.0), 1.0) * AXIS
    width = max(min(max((end - start) / whole, 0.0) * AXIS, AXIS - x), SHORTEST)
    return Bar(round(min(x, AXIS - width), 2), round(width, 2), look)


def bars_of(turn: TurnTimeline, step: Step) -> tuple[Bar, ...]:
    """The bars of one step on its turn's axis."""
    match step:
        case Request():
            return tuple(_of_request(turn, step))
        case Call():
            return tuple(_of_call(turn, step))
        case _:
            return (_bar(turn, step.at, step.at, "mark"),)


def _of_request(turn: TurnTimeline, request: Request) -> Iterable[Bar]:
    if request.first_s is not None:
        yield _bar(turn, request.began, request.began + request.first_s, "model-wait")
        yield _bar(turn, request.began + request.first_s, request.ended, "model")
    else:
        yield _bar(turn, request.began, request.ended, "model")


def _of_call(turn: TurnTimeline, call: Call) -> Iterable[Bar]:
    end = turn.ended if call.ended is None else call.ended
    yield _bar(turn, call.announced, end, "whole")
    for question in call.questions:
        yield _bar(turn, question.asked, end if question.answered is None else question.answered, "person")
    if call.began is not None:
        yield _bar(turn, call.began, end, "tool")


def parts_of(shares: Shares, longest_s: float) -> tuple[Bar, ...]:
    """What a time went to, side by side, on an axis that is `longest_s` long."""
    x, parts = 0.0, list[Bar]()
    for seconds, look in (
        (shares.model_s, "model"),
        (shares.tools_s, "tool"),
        (shares.waiting_s, "person"),
        (shares.other_s, "other"),
    ):
        width = AXIS * seconds / longest_s if longest_s > 0 else 0.0
        if width > 0:
            parts.append(Bar(round(x, 2), round(width, 2), look))
        x += width
    return tuple(parts)
