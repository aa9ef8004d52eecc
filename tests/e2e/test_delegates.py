"""Delegates over real pipes: side by side, on the session's desk, within its budget, and gone with a cancel."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import anyio.to_thread
import pytest

from tests.e2e.conftest import Spawn
from tests.e2e.processes import gone, pid_in, sleeper
from tests.e2e.promptness import Stopwatch
from tests.e2e.raw_client import clean_environment, run_cli
from tests.e2e.test_air import air, below
from tests.e2e.test_both_versions import call_of
from tests.stub_openai import Call, Failure, Reply, StubOpenAI

pytestmark = [pytest.mark.anyio]

MODEL = "openai-chat:stub"
SLOW_START_S = 30.0
CARDS = {"tool_call", "tool_call_update"}
ON = {"PUNIE_TOOLS_DELEGATES": "true"}
VERSIONS = pytest.mark.parametrize("version", [1, 2], ids=["v1", "v2"])

NO_SHELL = (
    """python3 -c 'import json, sys; d = json.load(sys.stdin); sys.exit(print("no shell", file=sys.stderr) or 2)'"""
)


def errands(*tasks: str, **more: Any) -> Reply:
    return Reply(calls=[Call("delegate", {"task": task, **more}) for task in tasks])


def results(stub: StubOpenAI, key: str) -> list[str]:
    """The results of calls in the last request of the conversation whose first prompt has that key."""
    last = [request for request in stub.requests if key in str(request.messages[:2])][-1]
    return [str(message["content"]) for message in last.messages if message["role"] == "tool"]


def hook(home: Path, matcher: str, line: str) -> None:
    """The user's `hooks.json`, with one line before calls of a tool."""
    hooks = {"PreToolUse": [{"matcher": matcher, "hooks": [{"type": "command", "command": line}]}]}
    (home / "punie").mkdir(parents=True, exist_ok=True)
    (home / "punie/hooks.json").write_text(json.dumps({"hooks": hooks}))


@VERSIONS
async def test_delegates_work_side_by_side_on_the_sessions_desk(
    spawn: Spawn, project: Path, tmp_path: Path, version: int
):
    hook(tmp_path / "home", "Bash", NO_SHELL)
    notes, new = str(project / "notes.txt"), str(project / "new.txt")
    read, write = Call("read_file", {"path": notes}), Call("write_file", {"path": new, "content": "by beta\n"})
    nested = Call("delegate", {"task": "more"})
    talks = {
        "MAIN": [errands("do ALPHA", "do BETA", "do GAMMA"), Reply(text=["all done"])],
        "ALPHA": [Reply(calls=[read]), Reply(text=["alpha has read it"])],
        "BETA": [Reply(calls=[write]), Reply(text=["beta has written it"])],
        "GAMMA": [Reply(calls=[nested, Call("run_command", {"command": "ls"})]), Reply(text=["gamma is alone"])],
    }
    with StubOpenAI(conversations=talks) as stub:
        async with spawn(model=MODEL, env={**stub.environment(), **ON}, version=version) as ide:
            session = await ide.open(project)
            ide.person.will("allow_once")
            turn = await ide.prompt(session, "MAIN", timeout_s=SLOW_START_S)
            assert (turn.text, turn.stop) == ("all done", "end_turn")
            (question,) = ide.person.questions
            assert call_of(question)["title"].endswith("(for the delegate: do BETA)")
            assert turn.result["_meta"]["punie.dev"]["usage"]["requests"] == 8, "the use of delegates is the turn's"
            shown = sorted(card.shown["title"] for card in turn.cards)
            assert shown[:3] == ["Delegate: do ALPHA", "Delegate: do BETA", "Delegate: do GAMMA"]
            assert len(shown) == 5, "the call that asked and the one that was refused have cards as well"
            assert sorted(card.status for card in turn.cards) == ["completed"] * 4 + ["failed"]
            assert (project / "new.txt").read_text() == "by beta\n"
            listed = await ide.request("session/list", {})
            assert [one["sessionId"] for one in listed["sessions"]] == [session]
        told = results(stub, "MAIN")
        assert ["alpha has read it" in told[0], "beta has written it" in told[1], "[delegate dele_" in told[2]] == [
            True,
            True,
            True,
        ]
        of_gamma = results(stub, "GAMMA")
        assert "none of this delegate's tools" in of_gamma[0]
        assert "no shell" in of_gamma[1], "hooks run for its calls as well"
        offered = [tool["function"]["name"] for tool in stub.requests[1].body["tools"]]
        assert "delegate" not in offered
        assert "update_plan" not in offered

    def check() -> None:
        env = clean_environment(tmp_path / "home")
        agent = told[1].split("[delegate ")[1].split(":")[0]
        audit = run_cli("permissions", "audit", "--json", env=env, cwd=project).stdout
        assert agent in audit, "each delegate has an id of its own in the audit"
        trace = run_cli("trace", session, "--output", str(tmp_path / "page.html"), env=env, cwd=project)
        assert trace.returncode == 0, trace.stderr
        pages = sorted(tmp_path.glob("punie-trace-dele_*.html"))
        assert len(pages) == 3
        linked = (tmp_path / "page.html").read_text("utf-8")
        assert all(f'href="{page.name}"' in linked for page in pages)
        assert "beta has written it" in (tmp_path / f"punie-trace-{agent}.html").read_text("utf-8")
        usage = json.loads(run_cli("usage", "--json", "--session", session, env=env, cwd=project).stdout)
        assert usage["byModel"][0]["requests"] == 8, "the work of delegates is the session's"

    await anyio.to_thread.run_sync(check)


async def test_air_sees_delegates_as_sessions_of_their_own(spawn: Spawn, project: Path):
    new = project / "new.txt"
    write = Reply(calls=[Call("write_file", {"path": str(new), "content": "x\n"})])
    talks = {
        "MAIN": [errands("do \u202eALPHA\nand more", "do BETA"), Reply(text=["all done"])],
        "ALPHA": [write, Reply(text=["alpha has it"])],
        "BETA": [Failure(400, "no")],
    }
    with StubOpenAI(conversations=talks) as stub:
        caps = air("nativeSubagentSessions", "agentFileChangeReport")
        async with spawn(model=MODEL, env={**stub.environment(), **ON}, caps=caps) as ide:
            assert "nativeSubagentSessions" in below((await ide.initialize())["_meta"])["capabilities"]
            session = await ide.new_session(project)
            ide.person.will("allow_once")
            turn = await ide.prompt(session, "MAIN", timeout_s=SLOW_START_S)
            assert turn.text == "all done"
            spawned = [one for one in turn.told if one["sessionUpdate"] == "subagent_spawned"]
            ended = [one for one in turn.told if one["sessionUpdate"] == "subagent_state_update"]
            alpha, beta = sorted(spawned, key=lambda one: "BETA" in one["name"])
            assert (alpha["task"], beta["name"], beta["capabilities"]) == ("do ALPHA\nand more", "do BETA", {})
            states = {one["subagentSessionId"]: one["state"] for one in ended}
            child = alpha["subagentSessionId"]
            assert states == {child: "completed", beta["subagentSessionId"]: "failed"}
            (question,) = ide.person.questions
            assert question["sessionId"] == child
            assert question["toolCall"]["title"] == f"Writing {new}"
            told = ide.log.updates(child)
            assert [one["status"] for one in told if one.get("status")][-1] == "completed"
            assert "".join(one["content"]["text"] for one in told if "chunk" in one["sessionUpdate"]) == "alpha has it"
            assert {card.shown["title"][:9] for card in turn.cards} == {"Delegate:"}
            order = [(one.params["sessionId"], one.params["update"]) for one in ide.log.from_agent("session/update")]
            assert order.index((session, alpha)) < order.index((child, told[0]))


async def test_a_delegates_use_counts_to_the_turn_and_a_subset_is_all_it_has(spawn: Spawn, project: Path):
    read = Reply(calls=[Call("read_file", {"path": str(project / "notes.txt")})])
    talks = {
        "MAIN": [errands("do ALPHA", tools=["read_file"], max_requests=9), Reply(text=["never"])],
        "ALPHA": [read, read, read, read],
        "WRONG": [errands("x", tools=["no_such", "delegate"]), errands("x", model="other:model"), Reply(text=["ok"])],
        "SHORT": [errands("do SMALL", max_requests=1), Reply(text=["done"])],
        "SMALL": [read, read],
    }
    with StubOpenAI(conversations=talks) as stub:
        budget = {"PUNIE_BUDGET_TURN_REQUESTS": "4"}
        async with spawn(model=MODEL, env={**stub.environment(), **ON, **budget}) as ide:
            session = await ide.open(project)
            ide.person.will("reject_once")
            turn = await ide.prompt(session, "MAIN", timeout_s=SLOW_START_S)
            assert turn.stop == "max_turn_requests"
            assert "used 4 of 4 requests" in turn.text
            assert len(stub.requests) == 4
            assert [tool["function"]["name"] for tool in stub.requests[1].body["tools"]] == ["read_file"]
            assert (await ide.prompt(await ide.open(project), "WRONG")).text == "ok"
            wrong = results(stub, "WRONG")
            assert "cannot have no_such, delegate" in wrong[0]
            assert "no model other:model" in wrong[1]
            assert (await ide.prompt(await ide.open(project), "SHORT")).text == "done"
            assert "stopped early: max_turn_requests" in results(stub, "SHORT")[0]


@VERSIONS
async def test_a_cancel_reaches_all_delegates_and_a_kill_leaves_logs_that_can_be_read(
    spawn: Spawn, project: Path, tmp_path: Path, version: int
):
    files = [project / f"pid-{number}" for number in range(3)]
    talks = {f"TASK{at}": [Reply(calls=[Call("run_command", {"command": sleeper(f)})])] for at, f in enumerate(files)}
    main = [errands("TASK0", "TASK1", "TASK2"), Reply(text=["next"]), errands("ALPHA"), Reply(text=["gone on"])]
    read = Reply(calls=[Call("read_file", {"path": str(project / "notes.txt")})])
    talks |= {"ALPHA": [read, Reply(calls=[Call("run_command", {"command": sleeper(project / "pid")})])]}
    start = {"model": MODEL, "caps": {}, "version": version}
    with StubOpenAI(conversations={"MAIN": main, **talks}) as stub:
        env = {**stub.environment(), **ON}
        async with spawn(**start, env=env, exits=-signal.SIGKILL) as ide:
            session = await ide.open(project)
            ide.person.always("allow_once")
            running = await ide.start_prompt(session, "MAIN")
            pids = [await pid_in(file, 2 * SLOW_START_S) for file in files]
            ending = Stopwatch()
            await ide.cancel(session)
            assert (await running.turn()).stop == "cancelled"
            assert ending.seconds() < 1.0
            for pid in pids:
                await gone(pid)
            assert (await ide.prompt(session, "go on")).text == "next"
            await ide.start_prompt(session, "again")
            await pid_in(project / "pid", 2 * SLOW_START_S)
            await ide.signal(signal.SIGKILL)
            await ide.exit()
        async with spawn(**start, env=env) as ide:
            await ide.initialize()
            loading = {"sessionId": session, "cwd": str(project), "mcpServers": []}
            method = "session/load" if version == 1 else "session/resume"
            more = {} if version == 1 else {"replayFrom": {"type": "start"}}
            await (await ide.start(method, {**loading, **more})).result(2 * SLOW_START_S)
            cards = [one for one in ide.log.updates(session) if one["sessionUpdate"] in CARDS]
            states = {one["toolCallId"]: one["status"] for one in cards if "status" in one}
            assert len([one for one in cards if one.get("title") == "Delegate: ALPHA"]) == 1
            assert set(states.values()) == {"failed" if version == 1 else "cancelled"}, (
                "the card of the delegate that was killed is closed"
            )
            assert (await ide.prompt(session, "go on")).text == "gone on"

    def check() -> None:
        home = clean_environment(tmp_path / "home")

        def told(*words: str) -> Any:
            return json.loads(run_cli(*words, "--json", env=home, cwd=project).stdout)

        assert [one["sessionId"] for one in told("sessions", "list")] == [session]
        page = run_cli("trace", session, "--output", str(tmp_path / "page.html"), env=home, cwd=project)
        assert page.returncode == 0, page.stderr
        logs = sorted(one.name[len("punie-trace-") : -len(".html")] for one in tmp_path.glob("punie-trace-dele_*.html"))
        assert len(logs) == 4
        cut_off = [told("sessions", "show", one)["entries"] for one in logs]
        (killed,) = [entries for entries in cut_off if "notes.txt" in json.dumps(entries)]
        assert "turn_ended" not in json.dumps(killed[-1])
        assert told("sessions", "delete", session) == {"deleted": session}
        assert "there is no session" in run_cli("sessions", "show", logs[0], env=home, cwd=project).stderr

    await anyio.to_thread.run_sync(check)
