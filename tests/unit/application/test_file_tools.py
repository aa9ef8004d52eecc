"""read_file, write_file and edit_file through the desk (S1-28, S1-36, S1-37, S3-24 to S3-28, R-01)."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from punie.application.tools.files.edit_file import EditFile
from punie.application.tools.files.file_memory import FileMemory, ServedFiles
from punie.application.tools.files.read_file import ReadFile
from punie.application.tools.files.write_file import WriteFile
from punie.domain.errors import ToolFailedError
from punie.domain.session.events import ToolCallAnnounced, ToolCallUpdated
from punie.domain.tools.execution import Limits
from punie.domain.tools.tool import ToolKind, ToolOutcome, ToolResult
from punie.domain.values.content import Diff
from tests.fakes.client import FakeClient
from tests.unit.application.desk_bench import DONE, FAILED, PENDING, RUNNING, DeskBench, call, desk_of

pytestmark = pytest.mark.anyio

A = "/project/src/a.py"


async def bench_of(client: FakeClient, **how: Any) -> DeskBench:
    memory = FileMemory()
    tools = [kind(ServedFiles(client, client, memory)) for kind in (ReadFile, WriteFile, EditFile)]
    return await desk_of(tools, client=client, **how)


async def use(bench: DeskBench, name: str, **arguments: Any) -> ToolResult:
    with anyio.fail_after(5):
        return await bench.turn().call(call(name, arguments))


def announced(bench: DeskBench) -> ToolCallAnnounced:
    event = bench.events[0]
    assert isinstance(event, ToolCallAnnounced)
    return event


@pytest.mark.requirement("S3-24", "S3-25", "S3-26", "S3-27", "S3-28")
async def test_reading_tells_what_it_reads_before_it_reads_and_gives_the_text_to_the_model() -> None:
    client = FakeClient(files={A: "one\ntwo\n"})
    bench = await bench_of(client)
    result = await use(bench, "read_file", path="src/a.py")
    assert (result.text, client.reads, client.questions) == ("one\ntwo\n", [A], [])
    assert (announced(bench).title, announced(bench).kind) == ("Reading src/a.py", ToolKind.READ)
    assert announced(bench).locations == (A,)
    assert list(bench.lives.values()) == [[PENDING, RUNNING, DONE]]


async def test_a_range_of_lines_can_be_read() -> None:
    bench = await bench_of(FakeClient(files={A: "1\n2\n3\n4\n"}))
    assert (await use(bench, "read_file", path=A, line=2, limit=2)).text == "2\n3\n"
    assert (await use(bench, "read_file", path=A, line=None, limit=None)).text == "1\n2\n3\n4\n"
    assert (await use(bench, "read_file", path=A, line=3.0)).text == "3\n4\n"
    for wrong in ({"line": 0}, {"limit": 0}, {"line": "2"}, {"line": 1.5}, {"limit": True}):
        assert (await use(bench, "read_file", path=A, **wrong)).code == "invalid_arguments"


@pytest.mark.parametrize("name", ["read_file", "write_file", "edit_file"])
@pytest.mark.parametrize("path", ["", None, 7, ["a"]])
async def test_a_path_that_is_none_is_refused_in_words_the_model_can_use(name: str, path: Any) -> None:
    client = FakeClient()
    bench = await bench_of(client)
    result = await use(bench, name, path=path, content="", old_text="a", new_text="b")
    assert result.code in {"invalid_arguments", "outside_workspace", "tool_failed"}
    assert "path" in result.text
    assert (client.reads, client.writes, client.questions) == ([], [], [])


async def test_a_missing_file_is_a_failure_with_the_clients_reason() -> None:
    bench = await bench_of(FakeClient())
    result = await use(bench, "read_file", path="none.py")
    assert (result.outcome, result.code) == (ToolOutcome.FAILED, "tool_failed")
    assert "no such file" in result.text


async def test_a_large_file_is_read_whole() -> None:
    bench = await bench_of(FakeClient(files={A: "x" * 5_000_000}))
    assert len((await use(bench, "read_file", path=A)).text) == 5_000_000


@pytest.mark.requirement("S1-36", "S1-12", "S1-13", "S1-15")
async def test_an_allowed_write_shows_the_diff_writes_and_says_so() -> None:
    client = FakeClient(files={A: "old\n"})
    client.queue_permission_selected("allow_once")
    bench = await bench_of(client)
    result = await use(bench, "write_file", path="src/a.py", content="new\n")
    assert client.files[A] == "new\n"
    assert result.text == "Successfully wrote to src/a.py"
    diff = Diff(A, "old\n", "new\n")
    assert client.questions[0].diffs == result.content == (diff,)
    assert announced(bench).title == "Writing src/a.py"
    last = bench.events[-1]
    assert isinstance(last, ToolCallUpdated)
    assert last.content == (diff,)


@pytest.mark.requirement("S1-37", "S1-16", "S1-21")
@pytest.mark.parametrize("option", ["reject", "banana", None])
async def test_a_write_that_is_not_allowed_writes_nothing(option: str | None) -> None:
    client = FakeClient(files={A: "old\n"})
    if option is None:
        client.queue_permission_cancelled()
    else:
        client.queue_permission_selected(option)
    bench = await bench_of(client)
    result = await use(bench, "write_file", path="src/a.py", content="new\n")
    assert result.text.startswith("Permission denied to write src/a.py")
    assert (client.files, client.writes) == ({A: "old\n"}, [])
    assert list(bench.lives.values()) == [[PENDING, FAILED]]


async def test_a_new_file_has_no_old_text_in_its_diff() -> None:
    client = FakeClient()
    client.queue_permission_selected("allow_once")
    result = await use(await bench_of(client), "write_file", path="new/x.py", content="")
    assert result.content == (Diff("/project/new/x.py", None, ""),)
    assert client.files == {"/project/new/x.py": ""}


async def test_without_anybody_to_read_the_old_text_from_the_diff_has_none() -> None:
    client = FakeClient(files={A: "old"})
    bench = await desk_of([WriteFile(ServedFiles(client))], client=client)
    client.queue_permission_selected("allow_once")
    assert (await use(bench, "write_file", path=A, content="new")).content == (Diff(A, None, "new"),)
    assert client.reads == []


@pytest.mark.requirement("R-02", "A-05")
async def test_allow_for_this_session_covers_writes_to_any_path_and_no_edits() -> None:
    client = FakeClient(files={A: "a"})
    bench = await bench_of(client)
    client.queue_permission_selected("allow_session")
    for path in ("a", "b/c", A):
        assert (await use(bench, "write_file", path=path, content="a")).succeeded
    assert len(client.questions) == 1
    assert not (await use(bench, "edit_file", path=A, old_text="a", new_text="b")).succeeded
    assert (await use(bench, "write_file", path="/etc/x", content="a")).code == "outside_workspace"
    assert len(client.questions) == 2


async def test_an_edit_replaces_the_one_occurrence_and_nothing_else() -> None:
    client = FakeClient(files={A: "a = 1\r\nb = 1\r\n"})
    client.queue_permission_selected("allow_once")
    bench = await bench_of(client)
    result = await use(bench, "edit_file", path="src/a.py", old_text="b = 1", new_text="b = 2")
    assert client.files[A] == "a = 1\r\nb = 2\r\n"
    assert result.content == client.questions[0].diffs == (Diff(A, "a = 1\r\nb = 1\r\n", "a = 1\r\nb = 2\r\n"),)
    assert announced(bench).title == "Editing src/a.py"


async def test_every_occurrence_is_replaced_only_on_demand() -> None:
    client = FakeClient(files={A: "x x x"})
    bench = await bench_of(client)
    refused = await use(bench, "edit_file", path=A, old_text="x", new_text="y")
    assert "3 times" in refused.text
    client.queue_permission_selected("allow_once")
    assert (await use(bench, "edit_file", path=A, old_text="x", new_text="y", replace_all=True)).succeeded
    assert client.files[A] == "y y y"


@pytest.mark.parametrize(
    ("old", "new", "says"), [("", "b", "empty"), ("same", "same", "the same"), ("not there", "b", "does not occur")]
)
async def test_an_edit_that_cannot_be_is_refused_before_anybody_is_asked(old: str, new: str, says: str) -> None:
    client = FakeClient(files={A: "same"})
    result = await use(await bench_of(client), "edit_file", path=A, old_text=old, new_text=new)
    assert says in result.text
    assert (client.questions, client.writes) == ([], [])


async def test_a_file_that_changed_while_the_question_was_open_is_not_overwritten() -> None:
    client = FakeClient(files={A: "old"})
    gate = client.hold("ask")
    client.queue_permission_selected("allow_once")
    bench = await bench_of(client)
    results: list[ToolResult] = []

    async def edit() -> None:
        results.append(await use(bench, "edit_file", path=A, old_text="old", new_text="new"))

    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(edit)
            await gate.arrived.wait()
            client.files[A] = "old, but changed by the person"
            gate.opened.set()
    assert "changed" in results[0].text
    assert client.files[A] == "old, but changed by the person"


@pytest.mark.requirement("R-16")
async def test_an_edit_of_a_secret_tells_nothing_of_its_content_without_leave() -> None:
    client = FakeClient(files={"/project/.env": "KEY=hunter2"})
    bench = await bench_of(client)
    there = await use(bench, "edit_file", path=".env", old_text="KEY=hunter2", new_text="x")
    absent = await use(bench, "edit_file", path=".env", old_text="KEY=other", new_text="x")
    assert there.text == absent.text
    assert len(client.questions) == 2


async def test_a_write_that_fails_is_a_failure_with_the_reason() -> None:
    client = FakeClient(files={A: "old"})
    client.queue_permission_selected("allow_session")
    bench = await bench_of(client)
    client.fail("write_text", ToolFailedError("the disk is full"))
    assert (await use(bench, "write_file", path=A, content="new")).text == "the disk is full"
    assert list(bench.lives.values()) == [[PENDING, RUNNING, FAILED]]


async def test_a_limit_in_the_settings_cuts_what_the_model_reads_of_a_file() -> None:
    bench = await bench_of(
        FakeClient(files={A: "x" * 1000}), limits=Limits(by_tool={"read_file": {"output_bytes": 100}})
    )
    assert "1000 bytes" in (await use(bench, "read_file", path=A)).text
