"""A model that goes round in circles is told once and then stopped, over real pipes with a real HTTP model."""

from __future__ import annotations

from itertools import cycle, islice
from pathlib import Path

import pytest

from tests.e2e.conftest import Spawn
from tests.e2e.test_situation import MODEL, said
from tests.stub_openai import Call, Reply, StubOpenAI

pytestmark = pytest.mark.anyio

SWINGS = [
    Call("edit_file", {"path": "notes.txt", "old_text": a, "new_text": b}) for a, b in (["two", "2"], ["2", "two"])
]


@pytest.mark.parametrize(("calls", "told", "stopped"), [
    ([Call("read_file", {"path": "notes.txt"})] * 7, {3: "the same result 3 times"}, "gave the same result 6 times"),
    ([Call("read_file", {"path": "none.txt"})] * 4, {}, "this same call failed 3 times"),
    (list(islice(cycle(SWINGS), 7)), {2: "is again as it was", 5: "not again", 6: "not again"}, "Nothing was changed"),
    (
        [Call("run_command", {"command": "sleep 0; date +%N >> log; tail -n 1 log"})] * 16,
        {5: "the same look 5 times"},
        "was made 15 times",
    ),
])  # fmt: skip
async def test_a_circle_is_told_once_and_then_stopped_with_advice(
    spawn: Spawn, project: Path, calls: list[Call], told: dict[int, str], stopped: str
) -> None:
    with StubOpenAI([*(Reply(calls=[one]) for one in calls), Reply(text=["I stop."])]) as stub:
        async with spawn(model=MODEL, env=stub.environment(), args=("--mode", "auto")) as ide:
            turn = await ide.prompt(await ide.open(project), "go", timeout_s=60)
        assert turn.text == "I stop."
        results = said(stub.requests[-1].body, "tool")
    assert len(results) == len(calls)
    assert {number: text for number, text in enumerate(results, 1) if "time" in text or "again" in text}.keys() == {
        *told, len(calls),
    }  # fmt: skip
    assert all(words in results[number - 1] for number, words in told.items())
    assert stopped in results[-1]
    assert "tell the user what is in the way" in results[-1]
