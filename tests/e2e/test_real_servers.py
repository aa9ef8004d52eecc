"""The six public servers behind the real commands, `punie acp` and `punie servers refresh` (issue 5, shows)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from punie.domain.servers.server import StdioTransport
from tests.e2e.conftest import Spawn
from tests.e2e.raw_client import clean_environment, run_cli
from tests.e2e.scripts import RESULT, TOOLS, Item, call
from tests.servers import installed

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(300)]

START_S = 120.0
"""Six interpreters start side by side and load their libraries, on a machine that may have other work."""


def searches(query: str) -> list[Item]:
    """Searches until every server has listed its tools: each waits 5 s for them, and the last says what there is."""
    return [*(call("search_tools", query=query, attempt=number) for number in range(12)), RESULT]


def entries(folder: Path) -> list[dict[str, Any]]:
    """All six as a client sends them in session/new."""
    sent: list[dict[str, Any]] = []
    for name, config in installed.all_six(folder).items():
        assert isinstance(config.transport, StdioTransport)
        env = [{"name": variable, "value": value} for variable, value in config.transport.env.items()]
        sent.append(
            {"name": name, "command": config.transport.command, "args": list(config.transport.args), "env": env}
        )
    return sent


async def test_a_model_finds_and_calls_tools_of_six_servers(spawn: Spawn, project: Path) -> None:
    note = call("filesystem__read_text_file", path=str(project / "notes.txt"))
    ann = {"name": "Ann", "entityType": "person", "observations": ["keeps bees"]}
    script = [
        searches("sum of two numbers"),
        [TOOLS],
        [call("call_tool", name="everything__get-sum", arguments={"a": 19, "b": 23}), RESULT],
        [note, RESULT],
        [call("memory__create_entities", entities=[ann]), call("memory__search_nodes", query="bees"), RESULT],
        [call("time__convert_time", source_timezone="UTC", time="12:00", target_timezone="Asia/Kathmandu"), RESULT],
        [call("git__git_status", repo_path=str(project)), RESULT],
    ]
    async with spawn(*script) as ide:
        ide.person.always("allow_once")
        await ide.initialize()
        session = await ide.new_session(project, mcpServers=entries(project))
        first = await ide.prompt(session, timeout_s=START_S)
        assert "everything__get-sum" in first.text
        offered = (await ide.prompt(session)).names
        assert offered[-2:] == ["search_tools", "call_tool"]
        assert "everything__get-sum" not in offered
        assert (await ide.prompt(session)).text.endswith("42.")
        assert "two" in (await ide.prompt(session)).text
        remembered = await ide.prompt(session)
        assert [card.status for card in remembered.cards] == ["completed", "completed"]
        assert "keeps bees" in remembered.text
        assert "17:45" in (await ide.prompt(session)).text
        told = await ide.prompt(session)
        assert told.card.status == "failed", "the project is no repository, and the server says so"


async def test_steps_of_a_long_call_reach_the_client_and_its_cancel_reaches_the_end(
    spawn: Spawn, project: Path
) -> None:
    long = call("everything__trigger-long-running-operation", duration=600, steps=6_000)
    async with spawn(searches("long running operation"), [long], [RESULT]) as ide:
        ide.person.always("allow_once")
        await ide.initialize()
        session = await ide.new_session(project, mcpServers=entries(project)[:1])
        await ide.prompt(session, timeout_s=START_S)
        running = await ide.start_prompt(session)
        await ide.log.until(lambda: any("of 6000" in f.raw.decode() for f in ide.log.frames), "a step")
        await ide.cancel(session)
        turn = await running.turn()
        assert turn.stop == "cancelled"
        assert turn.card.status == "failed"


def test_a_refresh_shows_what_came_went_and_changed(tmp_path: Path, project: Path) -> None:
    env = clean_environment(tmp_path / "home")
    mine = Path(env["PUNIE_HOME"]) / "mcp.json"

    def refreshed(**servers: dict[str, Any]) -> dict[str, Any]:
        mine.write_text(json.dumps({"mcpServers": servers}), encoding="utf-8")
        done = run_cli("servers", "refresh", "--json", env=env, cwd=project)
        assert (done.returncode, done.stderr) == (0, "")
        return json.loads(done.stdout)

    first = refreshed(clock=installed.entry("time"), one=installed.entry("filesystem", str(project)))
    assert len(first["added"]) == 16
    assert refreshed(clock=installed.entry("time"), one=installed.entry("filesystem", str(project))) == {
        "added": [], "removed": [], "changed": [], "errors": {},
    }  # fmt: skip
    another = refreshed(
        clock=installed.entry("time", "--local-timezone", "Asia/Kathmandu"), one=installed.entry("memory")
    )
    assert another["changed"] == ["clock__convert_time", "clock__get_current_time"]
    assert "one__read_graph" in another["added"]
    assert "one__read_text_file" in another["removed"]
    assert (len(another["added"]), len(another["removed"])) == (9, 14)
