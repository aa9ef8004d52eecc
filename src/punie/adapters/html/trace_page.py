"""A session's trace as one HTML page that needs nothing else: no network, no fonts, and no script to be read.

Everything on it was written by strangers. jinja2 escapes it, what cannot be seen is written out, and a policy in the
page lets nothing run or load but its own style and script, which it names by their digests.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import cast

from attrs import define, field
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from punie.adapters.html import bars, wording
from punie.domain.session.timeline import Call, PlanSeen, Remark, Request, SessionOutline, Speech, TurnTimeline
from punie.domain.values.display import display_output

MARK = "<!-- A trace of Punie -->"
"""The second line of every page: by this, another one may take its place."""

TEMPLATES = Path(__file__).parent / "templates"

_FILTERS: Mapping[str, Callable[..., object]] = {
    "duration": wording.duration,
    "number": wording.number,
    "counted": wording.counted,
    "dollars": wording.dollars,
    "moment": wording.moment,
    "clock": wording.clock,
    "stamp": wording.stamp,
    "kind_of": wording.kind_of,
    "outcome_of": wording.outcome_of,
    "request_ending": wording.request_ending,
    "ending_of": wording.ending_of,
    "is_trouble": wording.is_trouble,
    "answer_of": wording.answer_of,
    "effort_of": wording.effort_of,
}
_KINDS: Mapping[type, str] = {Speech: "speech", Request: "request", Call: "call", PlanSeen: "plan", Remark: "remark"}


@define
class TracePage:
    """One page, piece by piece: `head`, each turn that is told in full, `foot`; lives as long as its writing."""

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
        steps = [(_KINDS[type(step)], step, bars.bars_of(turn, step)) for step in turn.steps]
        return self._environment.get_template("turn.html.j2").render(turn=turn, steps=steps)

    def foot(self) -> str:
        """The end of the page."""
        script = Markup(_own("trace.js"))  # noqa: S704 - a file of this package
        return self._environment.get_template("foot.html.j2").render(version=self.version, script=script)


def _own(name: str) -> str:
    return (TEMPLATES / name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    """What a content security policy names an inline text by."""
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
    cast("dict[str, object]", environment.filters).update(_FILTERS)
    cast("dict[str, object]", environment.globals).update(parts_of=bars.parts_of, share=wording.share)
    return environment


def _shown(value: object) -> object:
    """Whatever a template writes: text without anything that cannot be seen; markup of ours as it is."""
    if isinstance(value, str) and not isinstance(value, Markup):
        return display_output(value)
    return value
