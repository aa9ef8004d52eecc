"""Forms at a terminal: what is shown, what may be typed, and that nothing is agreed to by an empty line."""

from __future__ import annotations

from typing import Any

import pytest

from punie.adapters.console.forms import filling
from punie.domain.session.elicitation import CANCELLED, DECLINED, Elicitation, ElicitationAction, form_of
from punie.mechanics.questions import answer

FIELDS = {
    "fruit": {"oneOf": [{"const": "a", "title": "Apple"}, {"const": "2", "title": "Pear"}], "type": "string"},
    "several": {"type": "array", "items": {"anyOf": [{"const": "x", "title": "X ray"}, {"const": "y", "title": "Y"}]}},
    "count": {"type": "integer", "title": "How many", "description": "Of all.\nTogether.", "default": 4},
    "share": {"type": "number"},
    "sure": {"type": "boolean"},
    "words": {"type": "string"},
}


def filled(fields: dict[str, Any], *typed: str, required: tuple[str, ...] = ()) -> tuple[Any, str]:
    """What a person gets by typing these lines, and all that is shown."""
    form = form_of({"type": "object", "properties": fields, "required": list(required)})
    shown: list[str] = []
    lines = iter(typed)
    found = answer(filling(Elicitation("Which?\nSay.", form, "The server"), shown.append), lambda: next(lines))
    assert not list(lines), "not all lines were read"
    return dict(found.content) if found.action is ElicitationAction.ACCEPT else found, "".join(shown)


def test_each_field_is_asked_for_with_its_choices_and_its_default() -> None:
    typed = ("apple\n", "1, y\n", "\n", "0.5\n", "N\n", " two words \n")
    content, shown = filled(FIELDS, *typed, required=("fruit",))
    assert content == {"fruit": "a", "several": ("x", "y"), "share": 0.5, "sure": False, "words": "two words"}
    assert shown.startswith(
        "? The server asks: Which?\n  | Say.\nfruit (the number of one; Enter declines)\n  1. Apple\n"
    )
    assert "How many (a whole number; Enter means 4)\nOf all.\nTogether.\n" in shown
    assert filled(FIELDS, "2\n", *["\n"] * 5, required=("fruit",))[0] == {"fruit": "2"}, "a value goes before a number"


@pytest.mark.parametrize(
    ("name", "wrong"),
    [("fruit", "3"), ("several", "x, z"), ("count", "1.5"), ("share", "nan"), ("share", "1e999"), ("sure", "perhaps")],
)
def test_what_means_nothing_is_asked_again(name: str, wrong: str) -> None:
    fields = {name: FIELDS[name]}
    assert "That was not understood: type " in filled(fields, f"{wrong}\n", "\n", "n\n")[1]
    assert filled(fields, *[f"{wrong}\n"] * 6)[0] == CANCELLED


def test_an_empty_line_agrees_to_nothing_and_the_end_of_the_input_cancels() -> None:
    assert filled({"words": FIELDS["words"]}, "\n", required=("words",))[0] == DECLINED
    assert filled({"words": FIELDS["words"]}, "\n", "\n")[0] == DECLINED
    assert filled({}, "\n")[0] == DECLINED
    assert filled({}, "perhaps\n", "y\n")[0] == {}
    assert filled({}, "")[0] == CANCELLED
    assert filled(FIELDS, "")[0] == CANCELLED


def test_a_half_character_of_another_encoding_is_replaced() -> None:
    assert filled({"words": FIELDS["words"]}, "caf\udce9\n", required=("words",))[0] == {"words": "caf\ufffd"}
