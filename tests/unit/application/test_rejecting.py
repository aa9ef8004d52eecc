"""What a person takes back of a session's changes: whole files and single hunks, never another's work."""

from __future__ import annotations

from itertools import pairwise

import pytest

from punie.adapters.local.files.file_history import LocalFileHistory
from punie.application.tools.files.rejecting import hunks_of, rejected
from punie.domain.errors import ToolFailedError
from punie.mechanics.line_diff import LINE_LIMIT
from punie.ports.history import ABSENT, ChangedBy, FileChange, FileVersion

pytestmark = pytest.mark.anyio

PATH = "/project/a"
NOTHING = FileVersion()
START = "".join(f"{number}\n" for number in range(1, 10))


def text(content: str) -> FileVersion:
    return FileVersion(0o100644, content.encode())


async def told(*versions: FileVersion, by: ChangedBy = "tool") -> LocalFileHistory:
    """The history of a file that went through these contents, each step by that maker."""
    history = LocalFileHistory(None)
    for was, left in pairwise(versions):
        await history.record(FileChange("t", PATH, was.key, left.key, by), was, left)
    return history


async def refused(history: LocalFileHistory, now: FileVersion, *hunks: int, words: str) -> None:
    with pytest.raises(ToolFailedError) as raised:
        await rejected(history, PATH, now, hunks)
    assert words in str(raised.value)


async def test_a_whole_file_goes_back_to_what_it_was_before_the_session() -> None:
    history = await told(text("1\n"), text("2\n"), text("3\n"))
    assert await rejected(history, PATH, text("3\n")) == text("1\n")
    assert (await rejected(await told(NOTHING, text("1\n")), PATH, text("1\n"))).key == ABSENT
    await refused(history, text("1\n"), words="as it was before this session")
    await refused(history, text("3\nmine\n"), words="+mine")
    await refused(await told(), text("1\n"), words="did not change")
    await refused(await told(text("1\n"), text("2\n"), by="person"), text("2\n"), words="Somebody else")
    await refused(await told(FileVersion(0o100644), text("2\n")), text("2\n"), words="not kept")


async def test_single_hunks_go_back_and_the_others_stay() -> None:
    left = START.replace("2\n", "two\n").replace("8\n", "")
    history = await told(text(START), text(START.replace("2\n", "2b\n")), text(left))
    assert [(len(hunk.old), len(hunk.new)) for hunk in hunks_of(START, left)] == [(1, 1), (1, 0)]
    assert await rejected(history, PATH, text(left), [1]) == text(START.replace("8\n", ""))
    assert await rejected(history, PATH, text(left), [2]) == text(START.replace("2\n", "two\n"))
    assert await rejected(history, PATH, text(left), [2, 1, 2]) == text(START)
    await refused(history, text(left), 3, words="2 places")
    made = await told(NOTHING, text("1\r\n2"))
    assert (await rejected(made, PATH, text("1\r\n2"), [1])).key == ABSENT


async def test_a_hunk_that_somebody_else_changed_stays_and_another_one_goes() -> None:
    left, before = START.replace("2\n", "two\n").replace("8\n", "eight\n"), START.replace("5\n", "five\n")
    history = await told(text(START), text(left))
    now = text(left.replace("eight\n", "EIGHT\n"))
    await refused(history, now, 2, words="+EIGHT")
    assert await rejected(history, PATH, now, [1]) == text(START.replace("8\n", "EIGHT\n"))
    cut = text(left.replace("eight\n", ""))
    await refused(history, cut, 2, words="-eight")
    between = LocalFileHistory(None)
    for was, after in ((START, before.replace("5", "5")), (before.replace("2", "2b"), before.replace("2", "two"))):
        await between.record(FileChange("t", PATH, text(was).key, text(after).key), text(was), text(after))
    await refused(between, text(before.replace("2", "two")), 1, words="omebody else")
    assert await rejected(between, PATH, text(before.replace("2", "two")), [2]) == text(START.replace("2", "two"))


async def test_what_has_no_lines_or_too_many_goes_back_whole_or_not_at_all() -> None:
    await refused(await told(text("\0"), text("1\n")), text("1\n"), 1, words="no lines")
    await refused(await told(text("1\n"), text("2\n")), text("\0"), 1, words="no lines")
    long = text("x\n" * (LINE_LIMIT + 1))
    await refused(await told(text("1\n"), long), long, 1, words="more than")
