"""The cases of ACP's TCK for agents in ACP v2 (draft), over real pipes, with a client without capabilities.

On closing, each client also judges its whole conversation by the schema of the draft, with every root closed.
"""

from __future__ import annotations

import base64
from pathlib import Path, PurePath

import pytest

from tests.e2e.conftest import Spawn
from tests.e2e.draft_client import DraftClient
from tests.e2e.ide_parts import Json
from tests.e2e.scripts import call, sleep, text
from tests.e2e.tck import NOBODY, attachment, error_of, line_is_answered, link, metas, nothing_more, picture, v2

pytestmark = pytest.mark.anyio

HISTORY = {f"{who}{chunk}" for who in ("user_message", "agent_message", "agent_thought") for chunk in ("", "_chunk")}
STATES = frozenset({"state_update"})
CLIENT_METHODS = {"session/update", "session/request_permission", "elicitation/create", "elicitation/complete",
                  "mcp/message", "$/cancel_request"}  # fmt: skip
STEPS = [{"content": "mend it", "status": "in_progress", "priority": "high"}]


def kinds(updates: list[Json]) -> set[str]:
    return {one["sessionUpdate"] for one in updates}


def states(updates: list[Json]) -> list[str]:
    return [one["state"] for one in updates if one["sessionUpdate"] == "state_update"]


@v2("ACP-INIT-001", "ACP-INIT-201", "ACP-INIT-203", "ACP-INIT-204", "ACP-SCHEMA-001", "ACP-EXT-202", "ACP-AUTH-201")
@v2("ACP-AUTH-202", "ACP-AUTH-203", "ACP-AUTH-204", "ACP-AUTH-205", "ACP-AUTH-206")
async def test_the_handshake_agrees_on_version_2(spawn: Spawn, project: Path):
    async with spawn([text("hi")], version=2) as ide:
        answer = await ide.initialize()
        assert answer["protocolVersion"] == 2
        assert answer["info"]["name"]
        assert answer["info"]["version"]
        can = answer["capabilities"]
        assert set(can) <= {"session", "auth", "_meta"}
        assert all(isinstance(value, dict) for value in (*can.values(), *can["session"].values()))
        methods = answer["authMethods"]
        assert len({method["methodId"] for method in methods}) == len(methods) > 0
        assert {method["type"] for method in methods} == {"agent"}
        assert await ide.request("auth/login", {"methodId": methods[0]["methodId"]}) == {}
        assert await ide.request("auth/logout", {}) == {}
        assert await ide.new_session(project)


@v2("ACP-INIT-003", "ACP-INIT-202")
@pytest.mark.parametrize(("asked", "agreed"), [(65_535, 2), (1, 1)])
async def test_a_version_of_the_future_or_the_past_is_answered_with_one_of_ours(spawn: Spawn, asked: int, agreed: int):
    async with spawn(version=2) as ide:
        ide.schema = None
        params = {"protocolVersion": asked, "info": {"name": "tck", "version": "0"}, "clientCapabilities": {}}
        assert (await ide.request("initialize", params))["protocolVersion"] == agreed


@v2("ACP-AUTH-207")
async def test_a_login_in_a_terminal_is_well_formed_where_it_is_asked_for(spawn: Spawn):
    async with spawn(version=2, caps={"auth": {"terminal": {}}}) as ide:
        methods = (await ide.initialize())["authMethods"]
        (terminal,) = [method for method in methods if method["type"] == "terminal"]
        assert all(isinstance(one, str) for one in terminal.get("args", []))
        names = [one["name"] for one in terminal.get("env", [])]
        assert len(set(names)) == len(names)


@v2("ACP-SESSION-001", "ACP-SESSION-002", "ACP-SESSION-203", "ACP-PROMPT-201", "ACP-PROMPT-203", "ACP-PROMPT-205")
@v2("ACP-PROMPT-003", "ACP-PROMPTCAP-001", "ACP-PROMPTCAP-003", "ACP-STATE-201", "ACP-STATE-202", "ACP-STATE-203")
@v2("ACP-TRANSPORT-201", "ACP-TRANSPORT-002", "ACP-TRANSPORT-203", "ACP-SCHEMA-002", "ACP-META-001", "ACP-META-201")
@v2("ACP-PATCH-201", "ACP-PATCH-203", "ACP-STDERR-001", "ACP-SHUTDOWN-001")
async def test_a_whole_exchange_is_in_the_schema_line_by_line(spawn: Spawn, project: Path):
    async with spawn(*([text("é\n𝄞")] for _ in range(5)), version=2) as ide:
        can = (await ide.initialize())["capabilities"]["session"]["prompt"]
        assert "image" in can
        assert "embeddedContext" in can
        assert "audio" not in can
        session = (await ide.request("session/new", {"cwd": str(project)}))["sessionId"]
        assert await ide.new_session(project) != session
        messages: set[str] = set()
        for blocks in (["hi"], ["hi"], ["see", link()], ["see", picture()], ["see", attachment()]):
            prompt = await ide.start_prompt(session, *blocks)
            turn, message = await prompt.turn(), (await prompt.result())["messageId"]
            messages.add(message)
            said = [u for u in ide.log.updates(session) if u.get("messageId") == message]
            assert kinds(said) & {"user_message", "user_message_chunk"}
            assert turn.stop == "end_turn"
            assert states(turn.told)[0] == "running"
            assert all(one["messageId"] for one in turn.told if one["sessionUpdate"] in HISTORY)
        assert len(messages) == 5
        meta = {"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "tck": True}
        last = {"sessionId": session, "prompt": [{"type": "text", "text": "hi"}], "_meta": meta}
        assert (await (await ide.start("session/prompt", last)).turn()).stop == "end_turn"
        told = [frame.message for frame in ide.log.frames if frame.sender == "agent"]
        assert all(meta is None or isinstance(meta, dict) for meta in metas(told))
        assert all(frame.raw.decode("utf-8").count("\n") == 0 for frame in ide.log.frames)
        assert b"Traceback" not in ide.stderr


@v2("ACP-PERM-201", "ACP-PATCH-204", "ACP-PATCH-205", "ACP-PATCH-206", "ACP-PATCH-207", "ACP-PATCH-208")
@v2("ACP-PATCH-209", "ACP-ENUM-201", "ACP-ENUM-202", "ACP-CLIENTCAP-201", "ACP-CLIENTCAP-202")
async def test_calls_plans_terminals_and_questions_have_their_forms(spawn: Spawn, project: Path):
    script = [
        call("update_plan", entries=STEPS),
        call("run_command", command="echo hi"),
        call("write_file", path="new", content="x"),
        call("ask_user", question="Which?", options=["a", "b"]),
    ]
    async with spawn(script, version=2) as ide:
        ide.person.always("allow_once")
        session = await ide.open(project)
        turn = await ide.prompt(session)
        assert turn.stop == "end_turn"
        assert ide.person.questions
        assert all(one["title"] and one["options"] and one["sessionId"] == session for one in ide.person.questions)
        told = ide.log.updates(session)
        found = states(told)
        assert "running" in found[len(found) - found[::-1].index("requires_action") :]
        assert all(one["plan"]["planId"] for one in told if one["sessionUpdate"] == "plan_update")
        assert {"plan_update", "terminal_update", "tool_call_update"} <= kinds(told)
        for card in turn.cards:
            assert card.call_id
            assert card.updates[0]["title"]
            assert len({one["name"] for one in card.updates if one.get("name")}) == 1
        terminals = [one for one in told if one["sessionUpdate"].startswith("terminal_")]
        folders = {(one["terminalId"], one["cwd"]) for one in terminals if one.get("cwd")}
        assert len(folders) == len({one["terminalId"] for one in terminals}) == 1
        assert all(PurePath(folder).is_absolute() for _, folder in folders)
        data = [one.get("data") or (one.get("output") or {}).get("data") for one in terminals]
        assert b"".join(base64.b64decode(one, validate=True) for one in data if one) == b"hi\n"
        asked = {frame.method for frame in ide.log.frames if frame.sender == "agent" and frame.method}
        assert all(method in CLIENT_METHODS or method.startswith("_") for method in asked)
        assert "elicitation/create" not in asked


@v2("ACP-ENUM-203")
async def test_an_unknown_answer_to_a_question_does_not_end_the_session(spawn: Spawn, project: Path):
    async with spawn([call("write_file", path="new", content="x"), text("on")], version=2) as ide:
        ide.person.will({"outcome": {"outcome": "_tck/unknown"}})
        turn = await ide.prompt(await ide.open(project))
        assert (turn.stop, turn.text) == ("end_turn", "on")
        assert not (project / "new").exists()


@v2("ACP-CANCEL-201", "ACP-CANCEL-202", "ACP-CANCEL-203", "ACP-CANCEL-204", "ACP-CANCEL-205", "ACP-CANCEL-206")
@v2("ACP-CANCEL-207", "ACP-CANCEL-208", "ACP-CLOSE-202", "ACP-INFO-CANCEL-201")
@pytest.mark.parametrize("ending", ["cancel", "with _meta", "close"])
async def test_a_cancelled_turn_ends_as_cancelled_once(spawn: Spawn, project: Path, ending: str):
    async with spawn([text("so"), sleep(30)], version=2) as ide:
        session = await ide.open(project)
        working = await ide.start_prompt(session)
        assert "messageId" in await working.result()
        await ide.until(lambda: "agent_message_chunk" in kinds(ide.log.updates(session)), "the first word")
        mark = len(ide.log.frames)
        if ending == "close":
            assert await ide.request("session/close", {"sessionId": session}) == {}
        else:
            meta = {"_meta": {"tck": True}} if ending == "with _meta" else {}
            await ide.notify("session/cancel", {"sessionId": session, **meta})
        assert (await working.turn()).stop == "cancelled"
        await nothing_more(ide, STATES)
        answers = [frame for frame in ide.log.frames[mark:] if frame.sender == "agent" and frame.is_answer]
        assert len(answers) == (ending == "close")
        for idle in (session, "never"):
            await ide.notify("session/cancel", {"sessionId": idle})
        await ide.alive()


@v2("ACP-INFO-CANCEL-202")
async def test_a_question_is_taken_back_when_its_turn_is_cancelled(spawn: Spawn, project: Path):
    async with spawn([call("write_file", path="new", content="x")], version=2) as ide:
        ide.hold("session/request_permission")
        session = await ide.open(project)
        working = await ide.start_prompt(session)
        await ide.until(lambda: ide.log.count("session/request_permission"), "the question")
        await ide.notify("session/cancel", {"sessionId": session})
        assert (await working.turn()).stop == "cancelled"
        assert ide.log.count("$/cancel_request") == 1


@v2("ACP-JSONRPC-001", "ACP-JSONRPC-002", "ACP-JSONRPC-003", "ACP-JSONRPC-004", "ACP-JSONRPC-005", "ACP-EXT-001")
@v2("ACP-EXT-201", "ACP-EXT-203", "ACP-ERROR-001", "ACP-INFO-UNKNOWNSESSION-001")
async def test_requests_are_answered_to_their_ids_and_notifications_never(spawn: Spawn, project: Path):
    async with spawn([text("hi")], version=2) as ide:
        await ide.initialize()
        for name in (424_242, "tck-string-id"):
            opening = await ide.start("session/new", {"cwd": str(project)}, request_id=name)
            assert (await opening.frame()).message["id"] == name
        assert (await error_of(await ide.start(NOBODY))).code == -32601
        assert (await error_of(await ide.start("session/new", {}))).code == -32602
        unknown = {"sessionId": "never", "prompt": [{"type": "text", "text": "hi"}]}
        assert (await error_of(await ide.start("session/prompt", unknown))).code == -32002
        mark = len(ide.log.frames)
        for method in ("_tck/ping", "$/does_not_exist"):
            await ide.notify(method, {"hello": "world"})
        await nothing_more(ide)
        assert not [frame for frame in ide.log.frames[mark:] if frame.sender == "agent" and frame.is_answer]
        await ide.new_session(project)


@v2("ACP-BATCH-201", "ACP-INFO-BATCH-201", "ACP-INFO-PARSE-001", "ACP-INFO-INVALIDREQ-001")
async def test_bad_lines_are_answered_by_one_error_and_the_connection_goes_on(spawn: Spawn, project: Path):
    async with spawn([text("hi")], version=2) as ide:
        await ide.initialize()
        await line_is_answered(ide, b"[]", -32600)
        await line_is_answered(ide, b'[{"jsonrpc": "2.0", "id": 1, "method": ', -32700)
        await line_is_answered(ide, b"this is not json", -32700)
        await line_is_answered(ide, b'{"foo": "bar"}', -32600)
        await ide.new_session(project)


@v2("ACP-BATCH-202", "ACP-BATCH-203", "ACP-BATCH-204", "ACP-BATCH-205", "ACP-BATCH-206", "ACP-INFO-BATCH-202")
async def test_a_batch_is_answered_by_one_array_of_what_wants_an_answer(spawn: Spawn, project: Path):
    async with spawn([text("hi")], version=2) as ide:
        assert isinstance(ide, DraftClient)
        await ide.initialize()
        note: Json = {"jsonrpc": "2.0", "method": "_tck/notify_only"}
        await ide.start_batch(note, note)
        await ide.start_batch({"jsonrpc": "2.0", "id": "of-no-request", "result": {}})
        await nothing_more(ide)
        assert ide.batches == []
        await ide.start_batch(17, True, None)
        await ide.until(lambda: ide.batches, "the answers to three bad entries")
        assert [(one["id"], one["error"]["code"]) for one in ide.batches[0]] == [(None, -32600)] * 3
        listing: Json = {"jsonrpc": "2.0", "method": "session/list"}
        nobody: Json = {"jsonrpc": "2.0", "id": "c", "method": NOBODY}
        answer: Json = {"jsonrpc": "2.0", "id": "tck-mixed-response", "result": {}}
        await ide.start_batch({**listing, "id": "a"}, note, 17, {**listing, "id": "b"}, nobody, answer)
        await ide.until(lambda: ide.batches[1:], "the answers to a batch")
        by_id = {one["id"]: one for one in ide.batches[1]}
        assert len(ide.batches[1]) == len(by_id) == 4
        assert by_id["a"]["result"]["sessions"] == by_id["b"]["result"]["sessions"]
        assert [by_id[name]["error"]["code"] for name in ("c", None)] == [-32601, -32600]
        many = b",".join(b'{"jsonrpc":"2.0","id":%d,"method":"session/list"}' % number for number in range(100_000))
        await line_is_answered(ide, b"[" + many + b"]", -32600)
        assert len(ide.batches) == 2
        await ide.new_session(project)


async def test_a_batch_answers_a_question_and_cancels_a_turn_that_other_requests_do_not_wait_for(
    spawn: Spawn, project: Path
):
    async with spawn([call("write_file", path="new", content="x"), sleep(30)], version=2) as ide:
        assert isinstance(ide, DraftClient)
        question = ide.hold("session/request_permission")
        session = await ide.open(project)
        prompt = await ide.start_prompt(session)
        await question.arrived.wait()
        (asked,) = ide.log.requests("session/request_permission")
        allow = next(one["optionId"] for one in asked.params["options"] if one["kind"] == "allow_once")
        outcome: Json = {"outcome": {"outcome": "selected", "optionId": allow}}
        listing: Json = {"jsonrpc": "2.0", "method": "session/list"}
        (listed,) = await ide.start_batch(
            {**listing, "id": "a"}, {"jsonrpc": "2.0", "id": asked.message["id"], "result": outcome}
        )
        assert session in [one["sessionId"] for one in (await listed.result())["sessions"]]
        await ide.until((project / "new").exists, "the file that the batch allowed")
        cancel: Json = {"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": session}}
        (again,) = await ide.start_batch(cancel, {**listing, "id": "b"})
        assert (await prompt.turn()).stop == "cancelled"
        assert await again.result()
        assert [len(one) for one in ide.batches] == [1, 1]


@v2("ACP-RESUME-201", "ACP-RESUME-202", "ACP-RESUME-203", "ACP-RESUME-204", "ACP-RESUME-205", "ACP-ADDDIRS-202")
@v2("ACP-CONFIG-203")
async def test_resuming_replays_before_its_answer_or_nothing(spawn: Spawn, project: Path, tmp_path: Path):
    async with spawn([text("one"), text("two")], version=2) as ide:
        session = await ide.open(project)
        prompt = await ide.start_prompt(session, "remember this")
        await prompt.turn()
        message = (await prompt.result())["messageId"]
        resume: Json = {"sessionId": session, "cwd": str(project), "additionalDirectories": [str(tmp_path)]}
        plain = await ide.start("session/resume", resume)
        assert (await plain.result())["configOptions"]
        assert plain.answer is not None
        told = ide.log.updates(session, after=plain.sent.index, before=plain.answer.index)
        assert not kinds(told) & HISTORY
        again = await ide.start("session/resume", {**resume, "replayFrom": {"type": "start"}})
        assert isinstance(await again.result(), dict)
        assert again.answer is not None
        replayed = ide.log.updates(session, after=again.sent.index, before=again.answer.index)
        whole = [one for one in replayed if one["sessionUpdate"].startswith("user_message")]
        assert {one["messageId"] for one in whole} == {message}
        for place, one in enumerate(replayed):
            if one["sessionUpdate"].endswith("_message_chunk"):
                kind = one["sessionUpdate"].removesuffix("_chunk")
                before = [was for was in replayed[:place] if was.get("messageId") == one["messageId"]]
                assert any(was["sessionUpdate"] == kind and was["content"] == [] for was in before)
        await nothing_more(ide)


@v2("ACP-LIST-201", "ACP-LIST-202", "ACP-LIST-203", "ACP-LIST-204", "ACP-CLOSE-201", "ACP-DELETE-201")
@v2("ACP-DELETE-202", "ACP-DELETE-203", "ACP-ADDDIRS-201")
async def test_sessions_are_listed_closed_and_deleted(spawn: Spawn, project: Path, tmp_path: Path):
    async with spawn([text("hi")], version=2) as ide:
        await ide.initialize()
        session = await ide.new_session(project, additionalDirectories=[str(tmp_path)])
        await ide.prompt(session)
        listed = (await ide.request("session/list", {}))["sessions"]
        assert session in [one["sessionId"] for one in listed]
        assert all(PurePath(one["cwd"]).is_absolute() for one in listed)
        there = (await ide.request("session/list", {"cwd": str(project)}))["sessions"]
        assert {one["cwd"] for one in there} == {str(project)}
        assert (await ide.request("session/list", {"cwd": str(tmp_path / "nobody")}))["sessions"] == []
        assert await ide.request("session/close", {"sessionId": session}) == {}
        for name in (session, session, "tck-never-created"):
            assert await ide.request("session/delete", {"sessionId": name}) == {}
        assert session not in [one["sessionId"] for one in (await ide.request("session/list", {}))["sessions"]]


@v2("ACP-CONFIG-201", "ACP-CONFIG-202", "ACP-CONFIG-204", "ACP-CONFIG-206", "ACP-INFO-CONCURRENT-201")
@v2("ACP-MCP-201", "ACP-MCP-202")
async def test_options_are_whole_and_servers_and_second_prompts_are_taken(spawn: Spawn, project: Path):
    servers = [
        {"type": "stdio", "name": "tck-stdio", "command": "/bin/nonexistent-tck-mcp-server", "args": []},
        {"type": "http", "name": "tck-http", "url": "http://127.0.0.1:1/tck-nonexistent"},
    ]
    async with spawn([text("one")], [text("two")], version=2) as ide:
        await ide.initialize()
        opened = await ide.request("session/new", {"cwd": str(project), "mcpServers": servers})
        session, options = opened["sessionId"], opened["configOptions"]
        assert all(one["configId"] and one["name"] and one["type"] == "select" for one in options)
        assert all(one["currentValue"] in [value["value"] for value in one["options"]] for one in options)
        change = {"sessionId": session, "configId": "mode", "type": "id", "value": "auto"}
        after = (await ide.request("session/set_config_option", change))["configOptions"]
        ids = {one["configId"] for one in options}
        assert {one["configId"] for one in after} >= ids
        first, second = await ide.start_prompt(session), await ide.start_prompt(session)
        assert [(await each.turn()).stop for each in (first, second)] == ["end_turn", "end_turn"]
        told = [one for one in ide.log.updates(session) if one["sessionUpdate"] == "config_option_update"]
        assert all({one["configId"] for one in update["configOptions"]} >= ids for update in told)
