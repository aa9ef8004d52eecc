"""Budgets over real pipes: each limit, a person who allows more, and a day that two processes share."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio.to_thread
import pytest

from punie.application.turns.budget import DAY_S
from tests.e2e.conftest import Spawn
from tests.e2e.ide_parts import choose
from tests.e2e.raw_client import clean_environment, run_cli
from tests.stub_openai import Call, Reply, StubOpenAI

pytestmark = [pytest.mark.anyio]

MODEL = "openai-chat:stub"
SLOW_START_S = 30.0


@pytest.fixture
def read(project: Path) -> Reply:
    """An answer that reads a file, for 15 tokens."""
    return Reply(calls=[Call("read_file", {"path": str(project / "notes.txt")})])


def limits(**budget: object) -> dict[str, str]:
    return {f"PUNIE_BUDGET_{name.upper()}": str(value) for name, value in budget.items()}


class Runs:
    """Runs of `punie` on one state, without a person."""

    def __init__(self, home: Path, project: Path, stub: StubOpenAI) -> None:
        self.home, self.project, self.stub = home, project, stub
        self.session = ""

    def environment(self, **budget: object) -> dict[str, str]:
        return clean_environment(self.home, **self.stub.environment(), **limits(**budget))

    def ask(self, *words: str, **budget: object) -> tuple[dict[str, Any], str, int]:
        """The last line of a run, its text and its exit code."""
        env = self.environment(**budget)
        done = run_cli("ask", "--json", "--model", MODEL, *words, env=env, cwd=self.project)
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        self.session = lines[0].get("sessionId", "")
        updates = [line["update"] for line in lines if line["type"] == "update"]
        said = [one["content"]["text"] for one in updates if one["sessionUpdate"] == "agent_message_chunk"]
        return lines[-1], "".join(said), done.returncode

    def json(self, *words: str, **budget: object) -> Any:
        return json.loads(run_cli(*words, "--json", env=self.environment(**budget), cwd=self.project).stdout)


@pytest.fixture
def runs(tmp_path: Path, project: Path) -> Iterator[Runs]:
    if time.time() % DAY_S > DAY_S - 120:
        pytest.skip("midnight may come between two runs")
    with StubOpenAI() as stub:
        yield Runs(tmp_path / "home", project, stub)


@pytest.mark.parametrize("version", [1, 2], ids=["v1", "v2"])
async def test_a_person_is_asked_for_more_and_a_stop_keeps_everything(
    spawn: Spawn, project: Path, read: Reply, version: int
):
    with StubOpenAI([read, read, read, read, Reply(text=["on I go"]), read, read, read, Reply(text=["end"])]) as stub:
        options: dict[str, Any] = {"env": {**stub.environment(), **limits(turn_requests=2)}, "version": version}
        async with spawn(model=MODEL, **options) as ide:
            session = await ide.open(project)
            ide.person.will(choose("allow_once", "budget_more"), choose("reject_once", "budget_stop"))
            turn = await ide.prompt(session, "read it", timeout_s=SLOW_START_S)
            assert turn.stop == "max_turn_requests"
            assert "This turn has used 4 of 4 requests to the model (budget.turn_requests)" in turn.text
            assert "Send another prompt to go on" in turn.text
            assert len(stub.requests) == 4
            asked = [question.get("toolCall", question)["title"] for question in ide.person.questions]
            assert asked == ["Go on beyond the budget?"] * 2
            assert (await ide.prompt(session, "go on")).text == "on I go"
            results = [one for one in stub.requests[4].messages if one["role"] == "tool"]
            assert len(results) == 4, "everything that was done is known to the model"
            ide.person.will(choose("allow_always", "budget_lift"))
            assert (await ide.prompt(session, "and on")).text == "end"
            assert len(stub.requests) == 9


async def test_each_limit_of_a_turn_stops_it_where_nobody_can_be_asked(runs: Runs, read: Reply):
    many = json.dumps({"calls": 9, "arguments": {"path": str(runs.project / "notes.txt")}})

    def check() -> None:
        end, said, code = runs.ask(many, turn_tokens=20)
        assert (end["stopReason"], code, len(runs.stub.requests)) == ("max_tokens", 1, 2)
        assert "tokens (budget.turn_tokens)" in said
        end, said, code = runs.ask(many, turn_cost=0.0001)
        assert (end["stopReason"], end["budget"], code, len(runs.stub.requests)) == ("end_turn", "turn_cost", 1, 3)
        assert "(budget.turn_cost)" in said, "an unknown price counts by a bound"
        end, said, code = runs.ask(many, turn_cost=0.0001, unknown_price=0)
        assert (end["stopReason"], code, len(runs.stub.requests)) == ("end_turn", 0, 13)
        assert "Stopped" not in said
        assert "budget" not in end
        end, said, code = runs.ask('{"chunks": 2, "hang": true}', turn_time_s=1.5)
        assert (end["stopReason"], end["budget"], code) == ("end_turn", "turn_time_s", 124), "out of time"
        assert "1.5 seconds (budget.turn_time_s)" in said

    await anyio.to_thread.run_sync(check)


async def test_a_session_and_a_day_add_up_over_processes(runs: Runs):
    def check() -> None:
        hello = '{"chunks": 2}'
        assert runs.ask(hello, session_requests=1)[0]["stopReason"] == "end_turn"
        end, said, code = runs.ask("--session", runs.session, hello, session_requests=1)
        assert (end["stopReason"], code, len(runs.stub.requests)) == ("max_turn_requests", 1, 1)
        assert "This session has used 1 of 1 requests to the model (budget.session_requests)" in said
        done = run_cli("ask", "--model", MODEL, hello, env=runs.environment(day_requests=1), cwd=runs.project)
        assert (done.returncode, len(runs.stub.requests)) == (1, 1)
        last = done.stdout.splitlines()[-1]
        assert last.startswith("Stopped: The sessions of today have used 1 of 1 requests to the model (budget.day_requ")
        assert runs.ask(hello, day_requests=2)[0]["stopReason"] == "end_turn"
        shown = runs.json("usage", day_requests=4, turn_cost=2)["budgets"]
        assert shown == [
            {"name": "turn_cost", "most": 2.0, "used": None, "left": None},
            {"name": "day_requests", "most": 4, "used": 2, "left": 2.0},
        ]
        checks = {one["name"]: one for one in runs.json("doctor", "--offline", day_requests=2)["checks"]}
        assert checks["budgets"]["ok"] is False
        assert "2 of 2 used, 0 left" in checks["budgets"]["detail"]

    await anyio.to_thread.run_sync(check)
