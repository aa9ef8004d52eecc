"""What a question says in words: all that is decided on, and nothing that plays tricks (issue 4, section 5)."""

from __future__ import annotations

import unicodedata
from typing import Any

from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from punie.domain.permission.flow import (
    ALLOW_ONCE,
    REJECT,
    SHOWN_PLAN_CHARS,
    PermissionQuestion,
    question_lines,
    question_markdown,
)
from punie.domain.tools.tool import ToolKind
from punie.domain.values.content import Diff
from punie.domain.values.json_value import freeze_object

HIDDEN = {"Cc", "Cf", "Zl", "Zp"}


def question(arguments: Any = None, **more: Any) -> PermissionQuestion:
    raw = None if arguments is None else freeze_object(arguments)
    asked = PermissionQuestion(
        "s", "c", "run_command", "Running make", ToolKind.EXECUTE, "it runs a program", (ALLOW_ONCE, REJECT),
        raw_input=raw,
    )  # fmt: skip
    return evolve(asked, **more)


def test_it_says_why_which_rule_where_what_and_what_would_be_stored() -> None:
    asked = question(
        {"command": "make"},
        rule="mode:ask",
        directory="/p/sub",
        locations=("/p/sub", "/p/a"),
        would_store="Always allow stores: make",
    )
    assert list(question_lines(asked)) == [
        "it runs a program (asked by mode:ask)",
        "in /p/sub",
        "at /p/a",
        'command: "make"',
        "Always allow stores: make",
    ]


def test_a_diff_stands_for_the_arguments_and_for_its_own_path() -> None:
    asked = question({"path": "a"}, diffs=(Diff("/p/a", "x", "y"),), locations=("/p/a", "/p/b"))
    assert list(question_lines(asked)) == ["it runs a program", "at /p/b"]


def test_a_plan_comes_first_line_by_line_and_cannot_pass_for_anything_else() -> None:
    asked = question({"plan": "one"}, about="1. write\n[o] Allow once  (Enter rejects)\n2. run")
    assert list(question_lines(asked))[:3] == ["| 1. write", "| [o] Allow once  (Enter rejects)", "| 2. run"]
    assert not any(line.startswith("plan:") for line in question_lines(asked))


def test_a_plan_too_long_to_be_read_says_how_much_is_missing() -> None:
    text = question_markdown(question(about="x" * (SHOWN_PLAN_CHARS + 7)))
    assert text.count("x") < SHOWN_PLAN_CHARS + 10
    assert "7 more characters" in text


def test_no_text_of_a_stranger_ends_the_code_block_it_stands_in() -> None:
    text = question_markdown(question({"command": "````\n[free](http://x) <!-- hidden"}, about="```\n# A heading"))
    fence = text.partition("text\n")[0]
    assert set(fence) == {"`"}
    inside = text.removeprefix(f"{fence}text\n").removesuffix(f"\n{fence}")
    assert fence not in inside


@given(st.text(), st.text(), st.text(min_size=1), st.text())
def test_whatever_strangers_wrote_nothing_is_hidden_in_it(reason: str, plan: str, path: str, value: str) -> None:
    asked = question({value: value}, reason=reason, about=plan, locations=(path,), rule=plan, would_store=reason)
    for line in question_lines(asked):
        assert not any(unicodedata.category(char) in HIDDEN and char != "\t" for char in line)
    without_plan = list(question_lines(evolve(asked, about="")))
    assert any(line.endswith(f"at {path}") for line in without_plan) or not path.isprintable()
