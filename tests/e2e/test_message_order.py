"""The calls of one message take effect in the order given: a real HTTP model on loopback, over real pipes."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.e2e.conftest import Spawn
from tests.stub_openai import Call, Reply, StubOpenAI

pytestmark = pytest.mark.anyio

RUNS = int(os.environ.get("PUNIE_TEST_ORDER_RUNS", "10"))
LINES = [f"line {number}" for number in range(3)]


def edit(number: int, old: str, new: str) -> Call:
    return Call("edit_file", {"path": "a.txt", "old_text": f"{old} {number}\n", "new_text": f"{new} {number}\n"})


def shown(command: str) -> Call:
    return Call("run_command", {"command": command})


def numbered(lines: Sequence[str]) -> str:
    """The lines as `read_file` gives them."""
    told = (f"{at}|{line}" for at, line in enumerate(lines, 1))
    return "\n".join([f"[lines 1-{len(lines)} of {len(lines)}; LF]", *told])


async def test_edits_of_one_file_and_commands_between_them_each_find_what_those_before_left(
    spawn: Spawn, project: Path
):
    whole = "".join(f"{line}\n" for line in LINES)
    undo = Call("write_file", {"path": "a.txt", "content": whole})
    once = [
        *(edit(number, "line", "new") for number in range(3)),
        shown("cat a.txt"),
        undo,
        shown("cat a.txt; echo over >> a.txt"),
        Call("read_file", {"path": "a.txt"}),
        shown("sed -i /over/d a.txt"),
        edit(0, "gone", "new"),
        edit(1, "line", "new"),
        shown("touch never"),
        Call("read_file", {"path": "a.txt"}),
    ]
    replies = [reply for _ in range(RUNS) for reply in (Reply(calls=once), Reply(text=["done"]))]
    (project / "a.txt").write_text(whole, "utf-8")
    with StubOpenAI(replies) as stub:
        async with spawn(model="openai-chat:stub", env=stub.environment(), args=("--mode", "auto")) as ide:
            session = await ide.open(project)
            for run in range(RUNS):
                turn = await ide.prompt(session, "go", timeout_s=30)
                told = [str(m["content"]) for m in stub.requests[-1].body["messages"] if m["role"] == "tool"][-12:]
                assert [card.status for card in turn.cards] == ["completed"] * 8 + ["failed"] * 3 + ["completed"], run
                assert told[3].startswith("new 0\nnew 1\nnew 2"), run
                assert told[5].startswith("line 0\nline 1\nline 2"), run
                assert told[6] == numbered([*LINES, "over"]), run
                assert all("Skipped" in words for words in told[9:11]), told
                assert told[11] == numbered(LINES), run
    assert (project / "a.txt").read_text("utf-8") == whole
    assert not (project / "never").exists()
