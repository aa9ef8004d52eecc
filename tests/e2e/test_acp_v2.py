"""ACP v2 (draft) behind --acp-v2: how it is agreed on, and what v1 has not (issue 6, deliver 7)."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.architecture.source_tree import ROOT
from tests.e2e import scripts
from tests.e2e.conftest import Spawn
from tests.e2e.draft_rules import DRAFT_RULES
from tests.e2e.official_schema import OfficialSchema, must_be_present
from tests.e2e.raw_client import EVERYTHING, RawClient, RpcError, agent_command, clean_environment
from tests.e2e.scripts import call, parallel, sleep, text
from tests.e2e.wire_log import WireLog
from tests.e2e.wire_rules import Conversation, violations

pytestmark = pytest.mark.anyio

ASK = "session/request_permission"
CLIENT = ROOT / "tests" / "schema" / "draft_client.mjs"
V1_MEMBERS = {"protocolVersion", "agentCapabilities", "authMethods", "agentInfo"}
V2_MEMBERS = {"protocolVersion", "capabilities", "authMethods", "info"}
BOTH = {
    "clientInfo": {"name": "raw", "version": "1"},
    "clientCapabilities": EVERYTHING,
    "info": {"name": "raw", "version": "1"},
    "capabilities": {},
}


def states(ide: RawClient, session: str) -> list[str]:
    """The states that were told, each with why it ended where it did."""
    return [
        f"{u['state']} {u['stopReason']}" if "stopReason" in u else u["state"]
        for u in ide.log.updates(session)
        if u["sessionUpdate"] == "state_update"
    ]


@pytest.mark.parametrize(("flag", "asked", "answered"), [(False, 2, 1), (True, 1, 1), (True, 3, 2)])
async def test_version_two_is_spoken_where_both_sides_want_it(
    spawn: Spawn, project: Path, flag: bool, asked: int, answered: int
):
    async with spawn([text("hi")], version=answered, args=("--acp-v2",) if flag and answered == 1 else ()) as ide:
        if not flag:
            assert "--acp-v2" not in ide.command
        answer = await ide.request("initialize", {"protocolVersion": asked, **BOTH})
        assert answer["protocolVersion"] == answered
        assert set(answer) == (V1_MEMBERS if answered == 1 else V2_MEMBERS)
        opened = await ide.request("session/new", {"cwd": str(project), "mcpServers": []}, timeout_s=10)
        assert ("modes" in opened) == (answered == 1)
        assert (await ide.prompt(opened["sessionId"])).text == "hi"


async def test_a_connection_keeps_its_version_and_v1s_methods_are_not_v2s(spawn: Spawn, project: Path):
    async with spawn([text("hi")], version=2) as ide:
        session = await ide.open(project)
        with pytest.raises(RpcError) as other:
            await ide.initialize(1)
        assert other.value.code == -32600
        assert (await ide.initialize())["protocolVersion"] == 2
        for method in ("session/load", "session/set_mode", "session/set_model", "authenticate", "terminal/create"):
            with pytest.raises(RpcError) as gone:
                await ide.request(method, {"sessionId": session})
            assert gone.value.code == -32601, method
        assert await ide.request("auth/login", {"methodId": "environment"}) == {}
        assert await ide.request("auth/logout", {}) == {}
        with pytest.raises(RpcError) as unknown:
            await ide.request("auth/login", {"methodId": "other"})
        assert unknown.value.code == -32602


async def test_a_session_that_is_not_open_is_named_and_closing_it_succeeds(spawn: Spawn, project: Path):
    async with spawn([text("hi")], version=2) as ide:
        await ide.initialize()
        resume = {"sessionId": "none", "cwd": str(project)}
        for method, params in (
            ("session/prompt", {"sessionId": "none", "prompt": [{"type": "text", "text": "hi"}]}),
            ("session/resume", resume),
            ("tool_call/cancel", {"sessionId": "none", "toolCallId": "x"}),
            ("terminal/cancel", {"sessionId": "none", "terminalId": "x"}),
        ):
            with pytest.raises(RpcError) as unknown:
                await ide.request(method, params)
            assert (unknown.value.code, unknown.value.data) == (-32002, {"sessionId": "none"}), method
        assert await ide.request("session/close", {"sessionId": "none"}) == {}
        await ide.notify("session/cancel", {"sessionId": "none"})
        session = await ide.new_session(project)
        with pytest.raises(RpcError) as cursor:
            await ide.request("session/resume", {**resume, "sessionId": session, "replayFrom": {"type": "middle"}})
        assert cursor.value.code == -32602
        assert (await ide.prompt(session)).text == "hi", "a resume that was refused costs nothing"
        await ide.request("session/close", {"sessionId": session})
        with pytest.raises(RpcError) as closed:
            await ide.prompt(session)
        assert closed.value.code == -32002


async def test_servers_and_values_that_were_not_offered_are_refused(spawn: Spawn, project: Path):
    servers: list[Any] = [
        {"type": "sse", "name": "s", "url": "http://127.0.0.1:9/sse"},
        {"name": "s", "command": "/bin/true"},
        {"type": "carrier-pigeon", "name": "s"},
        {"type": 5},
        "s",
    ]
    async with spawn([text("hi")], version=2) as ide:
        session = await ide.open(project)
        for server in servers:
            with pytest.raises(RpcError) as refused:
                await ide.new_session(project, mcpServers=[server])
            assert refused.value.code == -32602, server
        for typed, value in (("id", "wild"), ("boolean", True), ("id", 5), ("_other", "ask")):
            params = {"sessionId": session, "configId": "mode", "type": typed, "value": value}
            with pytest.raises(RpcError) as refused:
                await ide.request("session/set_config_option", params)
            assert refused.value.code == -32602, value


async def test_a_session_of_one_version_goes_on_over_the_other(spawn: Spawn, project: Path):
    async with spawn([text("over one")]) as ide:
        session = await ide.open(project)
        await ide.prompt(session, "begin")
        cards = ide.log.of_turns(session)
    async with spawn([text("never")], [text("over two")], version=2) as ide:
        await ide.initialize()
        params = {"sessionId": session, "cwd": str(project), "replayFrom": {"type": "start"}}
        await ide.request("session/resume", params, timeout_s=10)
        prompt, begun, said, *_ = ide.log.updates(session)
        assert (begun["content"], begun["messageId"]) == ([], said["messageId"])
        assert prompt["content"] == [{"type": "text", "text": "begin"}]
        assert (said["content"], said["messageId"]) == (cards[0]["content"], cards[0]["messageId"])
        assert (await ide.prompt(session)).stop == "end_turn"
    async with spawn([text("never")]) as ide:
        await ide.initialize()
        await ide.request("session/load", {"sessionId": session, "cwd": str(project), "mcpServers": []}, timeout_s=10)
        kinds = [update["sessionUpdate"] for update in ide.log.updates(session)]
        assert kinds.count("user_message_chunk") == 2


async def test_states_tell_of_work_of_a_question_and_of_the_end(spawn: Spawn, project: Path):
    script = [
        call("write_file", path=str(project / "a"), content="x"),
        parallel(
            call("run_command", command="sleep 0.3; echo ran"),
            call("write_file", path=str(project / "b"), content="x"),
        ),
    ]
    async with spawn(script, version=2) as ide:
        ide.person.always("allow_once")
        gate = ide.hold(ASK)
        session = await ide.open(project)
        prompt = await ide.start_prompt(session)
        await ide.until(gate.arrived.is_set, "the question")
        assert states(ide, session) == ["running", "requires_action"]
        gate.open()
        turn = await prompt.turn()
        assert [card.status for card in turn.cards] == ["completed"] * 3
        assert states(ide, session)[:3] == ["running", "requires_action", "running"]
        assert states(ide, session)[-1] == "idle end_turn"


async def test_held_prompts_wait_in_order_and_are_sent_back_by_a_cancel(spawn: Spawn, project: Path):
    script = [[call("write_file", path=str(project / "a"), content="x"), sleep(60)], [text("after")]]
    async with spawn(*script, version=2) as ide:
        ide.person.always("allow_once")
        gate = ide.hold(ASK)
        session = await ide.open(project)
        first = await ide.start_prompt(session, "first")
        await ide.until(gate.arrived.is_set, "the question")
        held = [await ide.start_prompt(session, f"held {number}") for number in range(16)]
        over = await ide.start_prompt(session, "one too many")
        with pytest.raises(RpcError) as full:
            await over.result()
        assert full.value.code == -32600
        await ide.notify("$/cancel_request", {"requestId": held[3].id})
        with pytest.raises(RpcError) as withdrawn:
            await held[3].result()
        assert withdrawn.value.code == -32800
        assert held[4].answer is None
        await ide.cancel(session)
        later = await ide.start_prompt(session, "later")
        for prompt in held:
            with pytest.raises(RpcError) as sent_back:
                await prompt.result()
            assert sent_back.value.code == -32800
        assert (await first.turn()).stop == "cancelled"
        turn = await later.turn()
        assert (turn.text, turn.stop) == ("after", "end_turn"), "a cancel does not touch what was sent after it"
        told = [u["content"][0]["text"] for u in ide.log.updates(session) if u["sessionUpdate"] == "user_message"]
        assert told == ["first", "later"]
        assert states(ide, session)[-3:] == ["idle cancelled", "running", "idle end_turn"]


async def test_one_call_is_cancelled_and_the_turn_goes_on(spawn: Spawn, project: Path):
    async with spawn([call("run_command", command="sleep 60 #"), text("on")], version=2) as ide:
        ide.person.always("allow_once")
        session = await ide.open(project)
        prompt = await ide.start_prompt(session)
        running = "in_progress"
        await ide.until(lambda: any(u.get("status") == running for u in ide.log.updates(session)), "the call")
        (begun,) = [u for u in ide.log.updates(session) if u.get("status") == "pending"]
        assert begun["capabilities"] == {"cancel": {}}
        stop = {"sessionId": session, "toolCallId": begun["toolCallId"]}
        assert await ide.request("tool_call/cancel", stop) == {}
        turn = await prompt.turn()
        assert (turn.card.status, turn.text, turn.stop) == ("cancelled", "on", "end_turn")
        for wrong in (stop, {**stop, "toolCallId": "none"}):
            with pytest.raises(RpcError) as over:
                await ide.request("tool_call/cancel", wrong)
            assert over.value.code == -32602


def screen(updates: list[dict[str, Any]], terminal: str) -> dict[str, Any]:
    """A terminal as the client has it after these updates."""
    shown: dict[str, Any] = {"text": b""}
    for update in updates:
        if update.get("terminalId") != terminal:
            continue
        if update["sessionUpdate"] == "terminal_output_chunk":
            shown["text"] += base64.b64decode(update["data"])
        else:
            shown |= {key: value for key, value in update.items() if key != "output"}
            if "output" in update:
                shown["text"] = base64.b64decode(update["output"]["data"])
    return shown


async def test_what_a_command_prints_is_shown_in_a_terminal_of_the_agents(spawn: Spawn, project: Path):
    command = "printf 'grüß'; sleep 0.3; echo e; exit 3"
    async with spawn([call("run_command", command=command)], [text("on")], version=2) as ide:
        ide.person.always("allow_once")
        session = await ide.open(project)
        turn = await ide.prompt(session)
        (anchor,) = {part["terminalId"] for part in turn.card.content("terminal")}
        shown = screen(ide.log.updates(session), anchor)
        assert (shown["text"].decode(), shown["exitStatus"]) == ("grüße\n", {"exitCode": 3})
        assert (shown["command"], shown["cwd"], shown["capabilities"]) == (command, str(project), None)
        await ide.request("session/close", {"sessionId": session})
        mark = len(ide.log.frames)
        again = {"sessionId": session, "cwd": str(project), "replayFrom": {"type": "start"}}
        await ide.request("session/resume", again, timeout_s=10)
        shown = screen(ide.log.updates(session, after=mark), anchor)
        assert (shown["text"].decode(), shown["exitStatus"]) == ("grüße\n", {"exitCode": 3})


async def test_a_terminal_in_the_background_is_followed_and_cancelled(spawn: Spawn, project: Path):
    script = [call("run_command", command="echo up; exec sleep 60", background=True), text("on")]
    async with spawn(script, [text("later")], version=2) as ide:
        ide.person.always("allow_once")
        session = await ide.open(project)
        turn = await ide.prompt(session)
        assert (turn.text, turn.card.status) == ("on", "completed")
        (anchor,) = {part["terminalId"] for part in turn.card.content("terminal")}
        await ide.until(lambda: screen(ide.log.updates(session), anchor)["text"] == b"up\n", "what it printed")
        stop = {"sessionId": session, "terminalId": anchor}
        assert await ide.request("terminal/cancel", stop) == {}
        await ide.until(lambda: "exitStatus" in screen(ide.log.updates(session), anchor), "its end")
        assert screen(ide.log.updates(session), anchor)["exitStatus"] == {"signal": "SIGTERM"}
        for wrong in (stop, {**stop, "terminalId": "none"}):
            with pytest.raises(RpcError) as over:
                await ide.request("terminal/cancel", wrong)
            assert over.value.code == -32602


@pytest.mark.parametrize("method", ["session/close", "session/delete"])
async def test_closing_a_session_that_works_tells_its_end_first(spawn: Spawn, project: Path, method: str):
    async with spawn([text("so"), call("write_file", path=str(project / "a"), content="x")], version=2) as ide:
        ide.hold(ASK)
        session = await ide.open(project)
        working = await ide.start_prompt(session)
        await ide.until(lambda: ide.log.count(ASK), "the question")
        held = await ide.start_prompt(session)
        closing = await ide.start(method, {"sessionId": session})
        assert await closing.result(10) == {}
        assert "messageId" in await working.result()
        with pytest.raises(RpcError) as sent_back:
            await held.result()
        assert sent_back.value.code == -32800
        assert states(ide, session) == ["running", "requires_action", "idle cancelled"]
        assert closing.answer is not None
        await ide.alive()
        assert ide.log.updates(session, after=closing.answer.index) == []
        withdrawn = [frame.params["requestId"] for frame in ide.log.from_agent("$/cancel_request")]
        assert withdrawn == [frame.message["id"] for frame in ide.log.requests(ASK)]


async def test_a_client_that_hangs_up_ends_a_turn_that_works(spawn: Spawn, project: Path):
    async with spawn([text("so"), sleep(60)], version=2) as ide:
        session = await ide.open(project)
        await (await ide.start_prompt(session)).result()
        ide.ended_early = True
        await ide.close_stdin()
        assert await ide.exit(5) == 0


@pytest.fixture
def node() -> str:
    """The program that runs the official client; skips loudly where something is missing, and fails on CI."""
    program = shutil.which("node")
    if not program or not (CLIENT.parent / "node_modules" / "@agentclientprotocol" / "sdk").is_dir():
        reason = "THE OFFICIAL CLIENT OF THE DRAFT IS NOT TESTED: install Node.js, then `npm ci --prefix tests/schema`"
        (pytest.fail if os.environ.get("CI") else pytest.skip)(reason)
    return program


def test_the_official_client_of_the_draft_works_with_it(node: str, project: Path, tmp_path: Path) -> None:
    write = call("write_file", path=str(project / "made.txt"), content="x")
    script = scripts.write(tmp_path / "script.json", [text("one"), write], [text("two")])
    command = [node, str(CLIENT), str(project), *agent_command("acp", "--acp-v2", "--model", script)]
    env = clean_environment(tmp_path / "home")
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    report = json.loads(done.stdout)
    assert report["initialize"]["protocolVersion"] == 2
    assert report["questions"] == [{"title": f"Writing {project / 'made.txt'}", "subject": "tool_call"}]
    assert report["turns"] == ["end_turn", "end_turn"]
    assert list(report["statuses"].values()) == [["pending", "in_progress", "completed"]]
    assert report["cancellable"] == [True, True, False]
    assert len(set(report["messages"])) == 2
    assert (report["mode"], report["listed"]) == ("auto", 1)
    said, made = ["user_message", "agent_message", "agent_message_chunk"], ["tool_call_update"] * 3
    assert report["replayed"][:11] == [*said, *made, *said, "available_commands_update", "state_update"]
    assert (project / "made.txt").exists()


def _told(update: dict[str, Any]) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "s", "update": update}}


_NEW: list[tuple[str, dict[str, Any]]] = [
    ("client", {"jsonrpc": "2.0", "id": 1, "method": "session/new", "params": {"cwd": "/p"}}),
    ("agent", {"jsonrpc": "2.0", "id": 1, "result": {"sessionId": "s"}}),
]
_RUNNING = {"sessionUpdate": "state_update", "state": "running"}
_IDLE = {"sessionUpdate": "state_update", "state": "idle", "stopReason": "end_turn"}
_CARD = {"sessionUpdate": "tool_call_update", "toolCallId": "c", "status": "pending", "title": "t", "name": "n"}
_SAID = {"sessionUpdate": "agent_message_chunk", "messageId": "m", "content": {"type": "text", "text": "x"}}


@pytest.mark.parametrize(("updates", "complaint"), [
    ([_RUNNING, _SAID, _IDLE], None),
    ([_SAID], "while the session is idle"),
    ([_RUNNING], "was left running"),
    ([_RUNNING, _CARD, _IDLE], "are open"),
    ([_RUNNING, _RUNNING, _IDLE], "same state twice"),
    ([_RUNNING, {**_IDLE, "stopReason": None}], None),
    ([_RUNNING, {"sessionUpdate": "state_update", "state": "idle"}], "nothing says why"),
    ([_IDLE], "nobody began"),
    ([_RUNNING, {**_CARD, "status": "completed"}, _IDLE], "begin pending"),
    ([_RUNNING, {**_SAID, "messageId": None}, _IDLE], "UpdateSessionNotification"),
    ([{**_RUNNING, "extra": 1}, _IDLE], "UpdateSessionNotification"),
    ([_RUNNING, {**_IDLE, "stopReason": "error", "error": {"code": "x"}}], "UpdateSessionNotification"),
    ([{"sessionUpdate": "plan", "entries": []}], "v2 has no plan"),
])  # fmt: skip
def test_the_rules_of_the_draft_see_a_planted_violation(updates: list[dict[str, Any]], complaint: str | None) -> None:
    schema = OfficialSchema.load(2)
    if schema is None:
        (pytest.fail if must_be_present() else pytest.skip)("THE OFFICIAL ACP SCHEMA IS MISSING")
    log = WireLog()
    for sender, message in [*_NEW, *(("agent", _told(update)) for update in updates)]:
        log.add("client" if sender == "client" else "agent", json.dumps(message).encode())
    found = violations(Conversation(log, {}, schema), DRAFT_RULES)
    assert found == [] if complaint is None else any(complaint in one for one in found), found
