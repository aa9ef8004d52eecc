"""Nothing that a person cannot see reaches a screen."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from punie.domain.values.display import display_exact, display_safe

HOSTILE = "a\x1b[31mred\x1b[0m \u202egnp.exe\u202c z\u200bero\ufeff \x07\x00\x7f\ud800 \u2028end"


def is_display_safe(text: str) -> bool:
    return all(char in "\n\t" or unicodedata.category(char) not in {"Cc", "Cf", "Zl", "Zp", "Cs"} for char in text)


@given(st.text(st.characters(codec=None)))
def test_whatever_comes_in_what_goes_out_is_display_safe(text: str) -> None:
    assert is_display_safe(display_safe(text))
    assert is_display_safe(display_exact(text))


@given(st.text())
def test_making_a_text_safe_twice_changes_nothing_more(text: str) -> None:
    assert display_safe(display_safe(text)) == display_safe(text)
    assert display_exact(display_exact(text)) == display_exact(text)


@given(st.text(st.characters(exclude_categories=["Cc", "Cf", "Zl", "Zp", "Cs"])))
def test_a_harmless_text_comes_through_as_it_is(text: str) -> None:
    assert display_safe(text) == display_exact(text) == text


def test_colours_vanish_whole_and_invisible_letters_leave_no_trace() -> None:
    assert display_safe(HOSTILE) == "ared gnp.exe zero  \nend"


def test_where_a_person_decides_the_invisible_is_written_out() -> None:
    shown = display_exact("rm \u200b-rf\u202e /")
    assert shown == "rm <U+200B>-rf<U+202E> /"


def test_text_hidden_in_a_window_title_sequence_is_shown() -> None:
    assert display_safe("ls \x1b]0;rm -rf ~\x07") == "ls ]0;rm -rf ~"


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r", "\x0b", "\x0c", "\x85", "\u2028", "\u2029"])
def test_every_kind_of_line_end_becomes_a_newline(end: str) -> None:
    assert display_safe(f"a{end}b") == "a\nb"


def test_tabs_and_newlines_and_letters_of_the_world_stay() -> None:
    text = "\tжизнь\n名前 café 🙂\n"
    assert display_safe(text) == text


def test_a_long_text_is_made_safe_in_little_time_per_character() -> None:
    text = "\x1b[" * 200_000
    assert display_safe(text) == "[" * 200_000
