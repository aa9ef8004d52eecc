"""A session goes back to before a turn: files and conversation, by request, `/undo` and `punie undo`, v1 and v2."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import Spawn
from tests.e2e.raw_client import RpcError, clean_environment, run_cli
from tests.e2e.scripts import call, sleep, text
from tests.stub_openai import Call, Recorded, Reply, StubOpenAI

pytestmark = pytest.mark.anyio

MODEL = "openai-chat:stub"
REWIND = "_punie.dev/rewind"
ASK = "session/request_permission"


def write(path: str, content: str) -> Reply:
    return Reply(calls=[Call("write_file", {"path": path, "content": content})])


def words(request: Recorded) -> str:
    """All that the model was told of the conversation."""
    return json.dumps([message for message in request.messages if message["role"] != "system"])


@pytest.mark.parametrize("version", [1, 2], ids=["v1", "v2"])
async def test_a_client_goes_back_and_the_model_has_never_heard_of_it(
    spawn: Spawn, project: Path, tmp_path: Path, version: int
) -> None:
    (project / "a.txt").write_text("first\n")
    turns = [write("a.txt", "second\n"), Reply(text=["one done"]), write("a.txt", "third\n"), write("b.txt", "new\n"),
             Reply(text=["two done"]), *[Reply(text=["never said"])] * 2, Reply(text=["three done"])]  # fmt: skip
    with StubOpenAI(turns) as stub:
        options: Any = {"model": MODEL, "env": stub.environment(), "caps": {}, "version": version}
        async with spawn(args=("--mode", "accept-edits"), **options) as ide:
            greeting = await ide.initialize(version)
            assert '"rewind": {"version": 1}' in json.dumps(greeting)
            session = await ide.new_session(project)
            for prompt in ("alpha", "beta", "gamma"):
                await ide.prompt(session, prompt)
            looked = await ide.request(REWIND, {"sessionId": session, "turn": 2, "dryRun": True})
            files = sorted(str(project / name) for name in ("a.txt", "b.txt"))
            assert looked == {"restored": files, "kept": [], "turn": 2, "lostTurns": 2}
            assert (project / "b.txt").read_text() == "new\n"
            assert await ide.request(REWIND, {"sessionId": session, "turn": 2}) == looked
            assert (project / "a.txt").read_text() == "second\n"
            assert not (project / "b.txt").exists()
            for wrong in ({"turn": 3}, {"turn": 0}, {"turn": "x"}, {"mode": "all"}):
                with pytest.raises(RpcError):
                    await ide.request(REWIND, {"sessionId": session, **wrong})
            shown = await ide.prompt(session, "/undo show")
            assert "the conversation, 1 turn from: alpha" in shown.text
            await ide.prompt(session, "delta")
            rows = (await ide.request("_punie.dev/changes", {"sessionId": session}))["changes"]
            assert [(row["turn"], row["path"]) for row in rows] == [(1, str(project / "a.txt"))]
            done = await ide.request("_punie.dev/changes", {"sessionId": session, "reject": {"path": "a.txt"}})
            assert done["rejected"] == ["a.txt"]
            assert (project / "a.txt").read_text() == "first\n"
            done = await ide.request("_punie.dev/changes", {"sessionId": session, "accept": []})
            assert done["changes"] == []
        async with spawn(**options) as ide:  # another process
            await ide.initialize(version)
            servers: dict[str, Any] = {"sessionId": session, "cwd": str(project), "mcpServers": []}
            loaded = {1: "session/load", 2: "session/resume"}[version]
            await ide.request(loaded, {**servers, **({"replayFrom": {"type": "start"}} if version == 2 else {})})
            told = json.dumps(ide.log.updates(session))
            assert "alpha" in told
            assert "delta" in told
            assert "beta" not in told
            assert "gamma" not in told
            await ide.prompt(session, "epsilon")
    last = words(stub.requests[-1])
    assert all(said in last for said in ("alpha", "one done", "delta", "epsilon"))
    assert not any(said in last for said in ("beta", "gamma", "two done", "third"))
    assert words(stub.requests[-2]).count("alpha") == 1


@pytest.mark.parametrize("version", [1, 2], ids=["v1", "v2"])
async def test_undo_asks_and_is_refused_while_a_turn_runs(spawn: Spawn, project: Path, tmp_path: Path, version: int):
    asks = call("run_command", command="touch b.txt")
    work = [asks, call("write_file", path="a.txt", content="made\n"), text("made it")]
    async with spawn(work, [*work, text("again")], version=version, caps={}) as ide:
        session = await ide.open(project)
        ide.person.will("allow_once", "allow_once")
        await ide.prompt(session, "first")
        ide.person.will("reject_once")
        turn = await ide.prompt(session, "/undo")
        assert "Nothing was taken back" in turn.text
        assert (project / "a.txt").exists()
        ide.person.will("allow_once")
        turn = await ide.prompt(session, "/undo 1 files")
        assert "Taken back: 2 files, to before turn 1." in turn.text
        assert not (project / "a.txt").exists()
        turn = await ide.prompt(session, "/undo 9")
        assert "There is no turn 9" in turn.text
        assert "is not understood" in (await ide.prompt(session, "/undo all of it")).text
        ide.person.will("allow_once")
        turn = await ide.prompt(session, "/undo 1 conversation")
        assert "Taken back: the conversation, to before turn 1." in turn.text
        gate = ide.hold(ASK)
        running = await ide.start_prompt(session, "wait")
        await ide.until(gate.arrived.is_set, "the question of a turn that runs")
        with pytest.raises(RpcError):
            await ide.request(REWIND, {"sessionId": session})
        await ide.cancel(session)
        gate.open()
        await running.turn()
    shown = run_cli("sessions", "show", session, env=clean_environment(tmp_path / "home"), cwd=project)
    assert "> first" not in shown.stdout, shown.stdout
    assert "> /undo 1 conversation" in shown.stdout
    rows = run_cli("permissions", "audit", "--json", env=clean_environment(tmp_path / "home"), cwd=project)
    assert rows.stdout.count("Going back to before turn 1") == 2


async def test_a_terminal_takes_back_a_session_whose_process_was_killed(spawn: Spawn, project: Path, tmp_path: Path):
    turns = ([text("one")], [call("write_file", path="a.txt", content="made\n"), sleep(60)])
    args = ("--mode", "accept-edits")
    async with spawn(*turns, caps={}, exits=-signal.SIGKILL, args=args) as ide:
        session = await ide.open(project)
        await ide.prompt(session, "alpha")
        await ide.start_prompt(session, "beta")
        await ide.until((project / "a.txt").exists, "the file")
        await ide.until(lambda: "completed" in json.dumps(ide.log.updates(session)), "the end of the call")
        await ide.signal(signal.SIGKILL)
        await ide.exit()
    env = clean_environment(tmp_path / "home")
    both = run_cli("undo", "--files", "--conversation", env=env, cwd=project)
    assert both.returncode == 2
    done = run_cli("undo", "--conversation", "--yes", "--json", env=env, cwd=project)
    assert (done.returncode, json.loads(done.stdout)) == (0, {"restored": [], "kept": [], "turn": 2, "lostTurns": 1})
    assert (project / "a.txt").exists()
    done = run_cli("undo", "--turn", "1", "--yes", env=env, cwd=project)
    assert done.stdout.endswith("Taken back: 1 file and the conversation, to before turn 1.\n"), done.stdout
    assert not (project / "a.txt").exists()
    shown = run_cli("sessions", "show", session, env=env, cwd=project)
    assert "alpha" not in shown.stdout.partition("\n\n")[2]
