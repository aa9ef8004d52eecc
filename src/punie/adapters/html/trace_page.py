"""A session's trace as one HTML page that needs nothing else: no network, no fonts, and no script to be read.

Everything on the page was written by strangers. jinja2 escapes it, invisible characters are written out, and a policy
in the page lets nothing run or load but its own style and script, which it names by their digests.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import cast

from attrs import define, field, frozen
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from punie.adapters.html import wording
from punie.domain.session.timeline import (
    Call,
    PlanSeen,
    Remark,
    Request,
    SessionOutline,
    Shares,
    Speech,
    Step,
    TurnTimeline,
)
from punie.domain.values.display import display_output

MARK = "<!-- A trace of Punie -->"
"""The second line of every page, by which `punie trace` knows a file that it may overwrite."""

TEMPLATES = Path(__file__).parent / "templates"

_FILTERS = (
    wording.duration, wording.number, wording.counted, wording.dollars, wording.moment, wording.clock, wording.stamp,
    wording.ending_of, wording.is_trouble, wording.answer_of,
)  # fmt: skip
_KINDS: Mapping[type, str] = {Speech: "speech", Request: "request", Call: "call", PlanSeen: "plan", Remark: "remark"}


@define
class TracePage:
    """One page in pieces: `head`, each turn that is told in full, `foot`; lives as long as its writing."""

    outline: SessionOutline
    version: str
    _environment: Environment = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._environment = _environment()

    def head(self) -> str:
        """The page down to where the turns begin."""
        style = _own("trace.css")
        return self._environment.get_template("head.html.j2").render(
            mark=Markup(MARK),  # noqa: S704 - a text of this module
            style=Markup(style),  # noqa: S704 - a file of this package
            style_digest=_digest(style),
            script_digest=_digest(_own("trace.js")),
            outline=self.outline,
            totals=self.outline.totals,
            summary=self.outline.summary,
            longest_s=max((turn.shares.total_s for turn in self.outline.turns), default=0.0),
        )

    def turn(self, turn: TurnTimeline) -> str:
        """One turn with its steps."""
        steps = [(_KINDS[type(step)], step, bars_of(turn, step)) for step in turn.steps]
        return self._environment.get_template("turn.html.j2").render(turn=turn, steps=steps)

    def foot(self) -> str:
        """The end of the page."""
        script = Markup(_own("trace.js"))  # noqa: S704 - a file of this package
        return self._environment.get_template("foot.html.j2").render(version=self.version, script=script)


def _own(name: str) -> str:
    return (TEMPLATES / name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    """The name of an inline text in a content security policy."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_shown,
    )
    cast("dict[str, object]", environment.filters).update({words.__name__: words for words in _FILTERS})
    cast("dict[str, object]", environment.globals).update(
        parts_of=parts_of, share=wording.share, kinds=wording.KINDS, outcomes=wording.OUTCOMES
    )
    return environment


def _shown(value: object) -> object:
    """A value that a template writes: text with its invisible characters written out; our own markup as it is."""
    if isinstance(value, str) and not isinstance(value, Markup):
        return display_output(value)
    return value


# ------------------------------------------------------------ the bars of a timeline

AXIS = 1_000.0
"""Steps of a turn's axis. Bars are SVG with attributes: a page without inline styles can place nothing by CSS."""

SHORTEST = 4.0
"""The width at which shorter bars are drawn, so that they can be seen."""


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
    first = request.began
    if request.first_s is not None:
        first += request.first_s
        yield _bar(turn, request.began, first, "model-wait")
    yield _bar(turn, first, request.ended, "model")


def _of_call(turn: TurnTimeline, call: Call) -> Iterable[Bar]:
    end = turn.ended if call.ended is None else call.ended
    yield _bar(turn, call.announced, end, "whole")
    for question in call.questions:
        yield _bar(turn, question.asked, end if question.answered is None else question.answered, "person")
    if call.began is not None:
        yield _bar(turn, call.began, end, "tool")


def parts_of(shares: Shares, longest_s: float) -> tuple[Bar, ...]:
    """The shares of a time side by side, on an axis that is `longest_s` long."""
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
