"""Tables for terminals of 40, 60 and 80 columns."""

from __future__ import annotations

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from punie.adapters.console.output import BELOW, columns_of, room, table


def test_words_stand_left_and_numbers_right() -> None:
    assert table(("NAME", "N"), [("a", 5), ("bcd", 100)]) == "NAME    N\na       5\nbcd   100\n"
    assert table(("N", "NAME"), [(5, "a"), (100, "bcd")]) == "  N  NAME\n  5  a\n100  bcd\n"


def test_the_last_column_is_wrapped_below_itself() -> None:
    lines = table(("NAME", "WHAT"), [("tool", "word " * 30)]).splitlines()
    assert max(map(len, lines)) <= 80
    assert len(lines) == 3
    assert all(line.startswith(" " * 6 + "word") for line in lines[2:])


def test_no_rows_leave_the_headers() -> None:
    assert table(("NAME", "N"), []) == "NAME  N\n"


def test_values_of_every_kind_are_words() -> None:
    shown = table(("A", "B", "C", "D"), [(True, None, 1.25, "two\nlines")])
    assert shown.splitlines()[1].split() == ["yes", "1.2", "two", "lines"]


@given(st.lists(st.tuples(st.text(max_size=12), st.text(max_size=200)), max_size=4))
def test_whatever_is_in_it_no_line_is_too_long_and_no_terminal_is_steered(rows: list[tuple[str, str]]) -> None:
    shown = table(("NAME", "WHAT"), rows)
    assert all(len(line) <= 80 for line in shown.split("\n"))
    assert not {"\x1b", "\r", "\u202e", "\u200b"} & set(shown)


_WORDS = ("read_file", "built-in", "src/a/rather/deep/name.py", "2026-11-24", "word", "語語語", "x")


@given(
    st.lists(st.lists(st.lists(st.sampled_from(_WORDS), max_size=9).map(" ".join), min_size=5, max_size=5), max_size=4),
    st.sampled_from((40, 60, 80)),
)
def test_at_any_width_no_line_is_longer_than_the_terminal_and_no_word_is_broken(
    rows: list[list[str]], width: int
) -> None:
    shown = table(("ONE", "TWO", "THREE", "FOUR", "FIVE"), rows, width)
    assert all(columns_of(line) <= width for line in shown.split("\n"))
    assert sorted(word for row in rows for cell in row for word in cell.split()) == sorted(
        word for word in shown.replace(",", " ").split() if word in _WORDS
    )


def test_a_cell_too_long_for_its_column_is_below_its_row_and_columns_too_many_are_named() -> None:
    row = ("sess_1", "2026-11-24 02:32", 1, "a title of several words")
    headers = ("ID", "CHANGED", "TURNS", "TITLE")
    assert table(headers, [row], 80).count("\n") == 2
    assert table(headers, [row], 40).splitlines()[2:] == [
        "sess_1  2026-11-24 02:32      1", f"{BELOW}a title of several words"
    ]  # fmt: skip
    assert table(headers, [row], 24).splitlines() == [
        "sess_1", "    CHANGED: 2026-11-24", "    02:32, TURNS: 1,", "    TITLE: a title of", "    several words"
    ]  # fmt: skip


def test_figures_stand_close_and_a_name_too_long_for_them_is_cut_with_a_sign() -> None:
    shown = table(("TOOL", "CALLS", "TIME"), [("a_tool_of_a_long_name", "2", "43 ms")], 24, figures=True)
    assert shown == "TOOL         CALLS  TIME\na_tool_of_a…     2 43 ms\n"


def test_a_terminal_gives_the_width_up_to_80_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    assert room() == 80
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert room() == 60
    monkeypatch.setenv("COLUMNS", "200")
    assert room() == 80
