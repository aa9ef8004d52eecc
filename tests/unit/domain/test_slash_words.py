"""How a slash command is recognised, filled in and followed; how an edit's first line is found."""

from __future__ import annotations

import os.path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from punie.domain.session.prompt_files import CommandInfo, TypedCommand, prompt_file, typed_in
from punie.domain.values.content import Diff, Image, Prompt, Text
from punie.domain.values.line_changes import first_changed_line

PICTURE = Image("aGk=", "image/png")


@pytest.mark.parametrize(("text", "typed"), [
    ("/mode", TypedCommand("mode", "")), (" \n/mode  auto \n", TypedCommand("mode", "auto")),
    ("/a-b_c x\ny", TypedCommand("a-b_c", "x\ny")), ("/mode\nauto", TypedCommand("mode", "auto")),
    ("/", None), ("/ mode", None), ("//mode", None), ("/etc/passwd", None), ("/mode.", None), ("mode", None),
    ("", None),
    ("/" + "x" * 65, None), ("/größe", None),
])  # fmt: skip
def test_only_a_first_text_that_begins_with_a_name_is_a_command(text: str, typed: TypedCommand | None) -> None:
    assert typed_in(Prompt((PICTURE, Text(text), Text("/other")))) == typed


def test_a_prompt_without_text_is_none() -> None:
    assert typed_in(Prompt((PICTURE,))) is None


@pytest.mark.parametrize(("text", "info", "body"), [
    ("Look.", CommandInfo("x", "Look."), "Look."),
    ("\ufeff# Title\r\n\r\nLook at $ARGUMENTS.", CommandInfo("x", "Title", "text"), "# Title\n\nLook at $ARGUMENTS."),
    ('---\ndescription: "Said"\nargument-hint: FILE\nother: 1\n---\nBody', CommandInfo("x", "Said", "FILE"), "Body"),
    ("---\nnot closed\ndescription: no", CommandInfo("x", "---"), "---\nnot closed\ndescription: no"),
    ("###", CommandInfo("x", "x"), "###"),
])  # fmt: skip
def test_a_file_is_read_into_a_command(text: str, info: CommandInfo, body: str) -> None:
    file = prompt_file("x", text)
    assert file is not None
    assert (file.info, file.text) == (info, body)


@pytest.mark.parametrize(("name", "text"), [("x", ""), ("x", "---\ndescription: a\n---\n \n"), ("a b", "t"), ("", "t")])
def test_a_file_that_makes_no_command_is_none(name: str, text: str) -> None:
    assert prompt_file(name, text) is None


def test_arguments_stand_where_the_file_says_and_are_not_read_again() -> None:
    file = prompt_file("x", "A $ARGUMENTS b $ARGUMENTS")
    assert file is not None
    filled = file.filled(TypedCommand("x", "$ARGUMENTS"), Prompt((PICTURE, Text("/x $ARGUMENTS"))))
    assert filled.blocks == (PICTURE, Text("A $ARGUMENTS b $ARGUMENTS"))


@given(st.text("ab\n", max_size=30), st.text("ab\n", max_size=30))
def test_an_edit_begins_at_the_first_line_that_differs(old: str, new: str) -> None:
    line = first_changed_line(Diff("/f", old, new))
    same = os.path.commonprefix([old, new])  # noqa: RUF071 - by characters is what is wanted
    assert line == (None if old == new else same.count("\n") + 1)


@pytest.mark.parametrize("place", [4_095, 4_096, 4_097, 9_000])
def test_a_late_change_of_a_long_text_is_found(place: int) -> None:
    old = "x\n" * 10_000
    assert first_changed_line(Diff("/f", old, old[: 2 * place] + "y" + old[2 * place + 1 :])) == place + 1


def test_a_new_file_has_no_such_line() -> None:
    assert first_changed_line(Diff("/f", None, "x")) is None
