"""Unified diffs of one file: a hunk may have moved, its content may not differ."""

from __future__ import annotations

import difflib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from punie.application.tools.files.patching import apply_patch
from punie.domain.errors import ToolFailedError

LINES = ["a\n", "b\n", "\n", "-- x\n", "++ y\n", "@@ z\n", "\\ w\n", " indented\n", "c\r\n"]
FILE = "".join(f"{number}\n" for number in range(1, 21))

texts = st.tuples(st.lists(st.sampled_from(LINES), max_size=12), st.sampled_from(["", "last"])).map(
    lambda parts: "".join(parts[0]) + parts[1]
)


def split(text: str) -> list[str]:
    *whole, rest = text.split("\n")
    return [f"{line}\n" for line in whole] + ([rest] if rest else [])


def diff(before: str, after: str, context: int = 3) -> str:
    lines = difflib.unified_diff(split(before), split(after), "a/x", "b/x", n=context)
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


@given(texts, texts, st.integers(0, 3))
def test_every_diff_of_two_texts_makes_the_one_into_the_other(before: str, after: str, context: int) -> None:
    if before != after:
        assert apply_patch(before, diff(before, after, context))[0] == after


def hunk(body: str, header: str = "@@ -10,3 +10,3 @@") -> str:
    return f"--- a/x\n+++ b/x\n{header}\n{body}"


MIDDLE = hunk(" 10\n-11\n+eleven\n 12\n")


def test_a_hunk_that_moved_is_found_where_its_lines_stand() -> None:
    moved = "new\n" * 50 + FILE
    assert apply_patch(moved, MIDDLE) == (moved.replace("\n11\n", "\neleven\n"), 1)


def test_a_hunk_among_several_equal_places_takes_the_nearest_and_no_hunk_takes_an_equal_choice() -> None:
    repeated = "x\ny\n" * 10
    assert apply_patch(repeated, hunk("-x\n+X\n", "@@ -7 +7 @@"))[0] == "x\ny\n" * 3 + "X\ny\n" + "x\ny\n" * 6
    with pytest.raises(ToolFailedError, match="fits equally well at lines 7 and 9"):
        apply_patch(repeated, hunk("-x\n+X\n", "@@ -8 +8 @@"))


def test_a_hunk_without_a_header_line_before_it_and_with_a_lost_space_applies() -> None:
    assert apply_patch("a\n\nb\n", "@@ -1,3 +1,3 @@ def f():\n a\n\n-b\n+B\n")[0] == "a\n\nB\n"


def test_a_patch_that_was_sent_with_windows_line_ends_applies_to_plain_ones() -> None:
    assert apply_patch(FILE, MIDDLE.replace("\n", "\r\n"))[0] == FILE.replace("\n11\n", "\neleven\n")


@pytest.mark.parametrize(
    ("patch", "says"),
    [
        ("", "no hunk"),
        ("just words", "no hunk"),
        (hunk(" 10\n-eleven\n+11\n 12\n"), "Hunk 1 of the patch does not fit"),
        (hunk(" 10\n-11 \n+eleven\n 12\n"), "does not fit"),
        (MIDDLE + "@@ -15,1 +15,1 @@\n-none\n+x\n", "Hunk 2 of the patch does not fit"),
        (hunk(" 10\n-11\n+eleven\n"), "3 old and 3 new lines, and it has 2 and 2"),
        (hunk(" 10\n-11\n+eleven\n 12\n 13\n"), "after a hunk's last line stands ' 13'"),
        (hunk("", "@@ something @@"), "Hunk 1 has a header that cannot be read"),
        (hunk("?10\n"), "Hunk 1 of the patch is not complete"),
        (MIDDLE + "--- a/y\n+++ b/y\n@@ -1 +1 @@\n-1\n+one\n", "several files"),
        ("--- a/x\n+++ /dev/null\n@@ -1 +0,0 @@\n-1\n", "deletes the file"),
        (hunk("+x\n", "@@ -99,0 +100 @@"), "after line 99, which does not exist"),
    ],
)
def test_what_does_not_fit_exactly_is_refused_by_the_hunks_name(patch: str, says: str) -> None:
    with pytest.raises(ToolFailedError) as refused:
        apply_patch(FILE, patch)
    assert says in str(refused.value)


def test_no_line_is_glued_to_one_that_has_no_end() -> None:
    with pytest.raises(ToolFailedError, match="no newline"):
        apply_patch("a", hunk("+b\n", "@@ -1,0 +2 @@"))
    with pytest.raises(ToolFailedError, match="without a newline in the middle"):
        apply_patch("a\nb\n", hunk("-a\n+A\n\\ No newline at end of file\n", "@@ -1 +1 @@"))


def test_hunks_apply_in_order_and_never_into_each_other() -> None:
    first, second = "@@ -1 +1 @@\n-x\n+x\n", "@@ -2 +2 @@\n-x\n+y\n"
    assert apply_patch("x\nx\n", first + second) == ("x\ny\n", 2)
    with pytest.raises(ToolFailedError, match="Hunk 2"):
        apply_patch("x\nz\n", first + second)
