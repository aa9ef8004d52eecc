"""edit_file's forms, and that it leaves alone what it does not edit (INTERFACES.md section 4)."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from punie.application.tools.files.edit_file import EditFile
from punie.application.tools.files.file_memory import ServedFiles
from punie.application.tools.files.read_file import ReadFile
from punie.domain.tools.tool import ToolResult
from tests.fakes.client import FakeClient
from tests.unit.application.desk_bench import call, desk_of

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("INTERFACES-4", "S2-88")]

A = "/project/a.py"
PATCH = "--- a/a.py\n+++ b/a.py\n@@ -1,2 +1,3 @@\n one\n-two\n+2\n+2.5\n"


async def edit(text: str, *, decoded_elsewhere: bool = False, **arguments: Any) -> tuple[str, ToolResult, FakeClient]:
    client = FakeClient(files={A: text})
    client.queue_permission_selected("allow_once")
    bench = await desk_of([EditFile(ServedFiles(client, decoded_elsewhere=decoded_elsewhere))], client=client)
    with anyio.fail_after(5):
        result = await bench.turn().call(call("edit_file", {"path": A, **arguments}))
    return client.files[A], result, client


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("one\ntwo\nthree\n", "one\n2\n2.5\nthree\n"),
        ("one\r\ntwo\r\nthree\r\n", "one\r\n2\r\n2.5\r\nthree\r\n"),
        ("zero\none\ntwo\n", "zero\none\n2\n2.5\n"),
    ],
)
async def test_a_patch_changes_its_lines_and_keeps_the_line_ends(before: str, after: str) -> None:
    now, result, client = await edit(before, patch=PATCH)
    assert now == after
    assert result.text == f"Successfully edited {A} (1 hunks)"
    assert client.questions[0].diffs[0].new_text == after


async def test_a_patch_that_does_not_fit_names_its_hunk_and_asks_nobody() -> None:
    now, result, client = await edit("one\nother\n", patch=PATCH)
    assert "Hunk 1" in result.text
    assert (now, client.questions) == ("one\nother\n", [])


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({}, ["old_text: required", "new_text: required"]),
        ({"old_text": "one"}, ["new_text: required unless patch is given"]),
        ({"old_text": None, "new_text": "x", "patch": None}, ["old_text: required"]),
        ({"patch": PATCH, "old_text": "one", "new_text": "1"}, ["either patch, or old_text and new_text"]),
    ],
)
async def test_one_form_or_the_other_is_needed_and_the_answer_names_the_field(
    arguments: dict[str, Any], says: list[str]
) -> None:
    _, result, client = await edit("one\ntwo\n", **arguments)
    assert result.code == "invalid_arguments"
    assert [part for part in says if part not in result.text] == []
    assert (client.questions, client.reads) == ([], [])


@pytest.mark.parametrize(
    ("before", "old", "new", "after"),
    [
        ("one\r\ntwo\r\n", "one\ntwo", "1\n2\n3", "1\r\n2\r\n3\r\n"),
        ("one\r\ntwo\r\n", "one\r\ntwo", "1\r\n2", "1\r\n2\r\n"),
        ("\ufeffone\r\ntwo\r\n", "two", "2\nmore", "\ufeffone\r\n2\r\nmore\r\n"),
        ("one\r\ntwo\nthree\r\n", "two", "2", "one\r\n2\nthree\r\n"),
        ("one\rtwo\n", "one", "1", "1\rtwo\n"),
        ("one", "one", "1\n2", "1\n2"),
    ],
)
async def test_line_ends_and_the_byte_order_mark_stay(before: str, old: str, new: str, after: str) -> None:
    now, result, _ = await edit(before, old_text=old, new_text=new)
    assert (now, result.succeeded) == (after, True)


@pytest.mark.parametrize("text", ["caf\ufffd one\n", "one\0"])
async def test_what_a_client_could_not_decode_is_not_written_back(text: str) -> None:
    now, result, client = await edit(text, decoded_elsewhere=True, old_text="one", new_text="1")
    assert "could not decode" in result.text
    assert (now, client.writes, client.questions) == (text, [], [])


async def test_a_replacement_character_that_is_really_in_the_file_is_no_obstacle_here() -> None:
    assert (await edit("\ufffd one", old_text="one", new_text="1"))[0] == "\ufffd 1"


async def test_a_file_that_is_no_text_is_said_to_be_what_it_is_and_not_shown() -> None:
    client = FakeClient(files={A: "\ufffdPNG\r\n\x1a\n\0\0\0\rIHDR"})
    bench = await desk_of([ReadFile(ServedFiles(client))], client=client)
    result = await bench.turn().call(call("read_file", {"path": A}))
    assert (result.succeeded, result.code) == (False, "not_text")
    assert "a PNG image, 16 characters" in result.text
    assert "IHDR" not in result.text
