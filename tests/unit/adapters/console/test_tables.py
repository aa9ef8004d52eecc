"""Tables for a terminal of 80 columns."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from punie.adapters.console.output import table


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
