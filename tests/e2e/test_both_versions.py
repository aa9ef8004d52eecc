"""The same journeys over ACP v1 and v2 (draft), over real pipes, each message judged by the schema of its version.

What differs is written where it differs; everything else must be the same for a person (issue 6, deliver 7).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import Spawn
from tests.e2e.ide_parts import Forms
from tests.e2e.raw_client import RpcError, capabilities
from tests.e2e.scripts import RESULT, call, fail, sleep, text, thought, usage
from tests.e2e.test_mcp_sessions import ECHO, entry
from tests.e2e.test_servers_over_acp import serve

pytestmark = pytest.mark.anyio

ASK = "session/request_permission"
STEPS = [{"content": "mend it", "status": "in_progress", "priority": "high"}]
EXTENSION = {"_meta": {"punie.dev": {"discoverTools": {"version": 1}}}}
FORMS = {"elicitation": {"form": {}}}


def option(options: list[dict[str, Any]], name: str) -> dict[str, Any]:
    """The config option of that id."""
    (found,) = [one for one in options if one.get("id", one.get("configId")) == name]
    return found


def call_of(question: dict[str, Any]) -> dict[str, Any]:
    """The tool call that a question is about."""
    return question.get("toolCall") or question["subject"]["toolCall"]


async def test_a_prompt_is_answered_with_thoughts_words_and_an_end(spawn_version: Spawn, project: Path, version: int):
    async with spawn_version([thought("hm"), text("hel"), text("lo"), usage(10, 2)]) as ide:
        answer = await ide.initialize()
        assert answer["protocolVersion"] == version
        session = await ide.new_session(project)
        turn = await ide.prompt(session, "hi", {"type": "resource_link", "uri": "file:///a", "name": "a"})
        assert (turn.text, turn.thought, turn.stop) == ("hello", "hm", "end_turn")
        assert turn.result["_meta"]["punie.dev"]["usage"]["inputTokens"] == 10
        titles = [u["title"] for u in ide.log.updates(session) if u["sessionUpdate"] == "session_info_update"]
        assert titles == ["hi"]


@pytest.mark.parametrize("allowed", [True, False], ids=["allowed", "denied"])
async def test_a_write_is_asked_for_with_its_diff_and_done_or_not(
    spawn_version: Spawn, project: Path, version: int, allowed: bool
):
    target = project / "notes.txt"
    async with spawn_version([call("write_file", path=str(target), content="one\n2\nthree\n"), RESULT]) as ide:
        ide.person.will("allow_once" if allowed else "reject_once")
        session = await ide.open(project)
        turn = await ide.prompt(session)
        (question,) = ide.person.questions
        (diff,) = [item for item in call_of(question)["content"] if item["type"] == "diff"]
        if version == 1:
            assert (diff["oldText"], diff["newText"]) == ("one\ntwo\nthree\n", "one\n2\nthree\n")
        else:
            assert diff["changes"] == [{"operation": "modify", "path": str(target), "fileType": "text"}]
            assert "\n-two\n+2\n" in diff["patch"]["text"]
            assert "notes.txt" in question["title"]
            assert "mode:ask" in question["description"]
        ending = ["in_progress", "completed"] if allowed else ["failed"]
        assert turn.card.statuses == ["pending", *ending]
        assert turn.card.shown["kind"] == "edit"
        assert turn.stop == "end_turn"
    assert target.read_text("utf-8") == ("one\n2\nthree\n" if allowed else "one\ntwo\nthree\n")


async def test_a_plan_and_what_a_command_prints_are_shown(spawn_version: Spawn, project: Path, version: int):
    script = [call("update_plan", entries=STEPS), call("run_command", command="echo printed"), RESULT]
    async with spawn_version(script, caps={}) as ide:
        session = await ide.open(project)
        turn = await ide.prompt(session)
        assert "printed" in turn.text
        assert turn.card.status == "completed", "a plan has no card"
        assert turn.card.shown["rawOutput"]["exitCode"] == 0
        if version == 1:
            plans = [u["entries"] for u in turn.told if u["sessionUpdate"] == "plan"]
        else:
            plans = [u["plan"]["entries"] for u in turn.told if u["sessionUpdate"] == "plan_update"]
        assert plans == [STEPS]
        listed = await ide.request("_punie.dev/tools", {"sessionId": session})
        assert {"run_command", "update_plan"} <= {tool["name"] for tool in listed["tools"]}


async def test_a_turn_that_thinks_is_cancelled_and_the_next_one_works(spawn_version: Spawn, project: Path):
    async with spawn_version([text("so"), sleep(60)], [text("again")]) as ide:
        session = await ide.open(project)
        running = await ide.start_prompt(session)
        said = "agent_message_chunk"
        await ide.until(lambda: any(u["sessionUpdate"] == said for u in ide.log.updates(session)), "the first words")
        await ide.cancel(session)
        assert (await running.turn()).stop == "cancelled"
        assert (await ide.prompt(session)).text == "again"


async def test_a_turn_is_cancelled_while_its_question_is_open(spawn_version: Spawn, project: Path, version: int):
    target = project / "made.txt"
    async with spawn_version([call("write_file", path=str(target), content="x")]) as ide:
        ide.hold(ASK)
        session = await ide.open(project)
        running = await ide.start_prompt(session)
        await ide.until(lambda: ide.log.count(ASK), "the question")
        await ide.cancel(session)
        turn = await running.turn()
        assert turn.stop == "cancelled"
        assert turn.card.status == ("failed" if version == 1 else "cancelled")
    assert not target.exists()


async def test_a_turn_that_fails_says_why_and_the_next_one_works(spawn_version: Spawn, project: Path):
    async with spawn_version([text("well"), fail("auth", "the key is wrong")], [text("again")]) as ide:
        session = await ide.open(project)
        with pytest.raises(RpcError) as failed:
            await ide.prompt(session)
        assert (failed.value.code, failed.value.data["code"]) == (-32000, "auth")
        assert "the key is wrong" in failed.value.message
        assert (await ide.prompt(session)).text == "again"


async def test_tools_of_the_client_are_discovered_and_called(spawn_version: Spawn, project: Path, version: int):
    caps = EXTENSION if version == 2 else capabilities(discovery=True)
    async with spawn_version([call("lint", path="a"), RESULT], caps=caps) as ide:
        ide.person.will("allow_once")
        ide.catalogue.offer({"name": "lint", "description": "Finds problems.", "inputSchema": {"type": "object"}})
        await ide.initialize()
        answer = await ide.request("session/new", {"cwd": str(project), "mcpServers": []}, timeout_s=10)
        assert answer["_meta"]["punie.dev"]["discovery"]["tier"] == "catalog"
        turn = await ide.prompt(answer["sessionId"])
        assert turn.text == "lint is done"
        assert [made["arguments"] for made in ide.catalogue.calls] == [{"path": "a"}]
        await ide.notify("_punie.dev/tools_changed", {"sessionId": answer["sessionId"]})
        await ide.until(lambda: len(ide.catalogue.asked) == 2, "the second look at the tools")


async def test_mode_and_model_are_config_options_and_a_mode_is_obeyed(
    spawn_version: Spawn, project: Path, version: int
):
    typed = {"type": "id"} if version == 2 else {}
    script = [call("write_file", path=str(project / "made.txt"), content="x"), RESULT]
    async with spawn_version(script) as ide:
        await ide.initialize()
        opened = await ide.request("session/new", {"cwd": str(project), "mcpServers": []}, timeout_s=10)
        session = opened["sessionId"]
        assert ("modes" in opened) == (version == 1)
        assert option(opened["configOptions"], "mode")["currentValue"] == "ask"
        assert option(opened["configOptions"], "model")["category"] == "model"
        params = {"sessionId": session, "configId": "mode", "value": "accept-edits", **typed}
        changed = await ide.request("session/set_config_option", params)
        assert option(changed["configOptions"], "mode")["currentValue"] == "accept-edits"
        await ide.until(
            lambda: any(u["sessionUpdate"] == "config_option_update" for u in ide.log.updates(session)), "it"
        )
        turn = await ide.prompt(session)
        assert turn.card.status == "completed"
        assert ide.person.questions == []
        with pytest.raises(RpcError) as unknown:
            await ide.request("session/set_config_option", {**params, "value": "wild"})
        assert unknown.value.code == -32602
    assert (project / "made.txt").exists()


async def test_commands_are_told_and_one_is_done_without_a_model(spawn_version: Spawn, project: Path, version: int):
    async with spawn_version([text("never")]) as ide:
        session = await ide.open(project)
        kind = "available_commands_update"
        await ide.until(lambda: any(u["sessionUpdate"] == kind for u in ide.log.updates(session)), "the commands")
        (listed, *_) = [u for u in ide.log.updates(session) if u["sessionUpdate"] == kind]
        names = {command["name"] for command in listed["availableCommands"]}
        assert {"mode", "tools", "usage"} <= names
        assert {command.get("type") for command in listed["availableCommands"]} == {None if version == 1 else "command"}
        assert "ask" in (await ide.prompt(session, "/mode")).text


async def test_a_session_is_closed_listed_and_shown_again_from_its_beginning(
    spawn_version: Spawn, project: Path, version: int
):
    script = [thought("hm"), text("first"), call("list_files", path=str(project)), text("then")]
    async with spawn_version(script, [text("later")]) as ide:
        session = await ide.open(project)
        turn = await ide.prompt(session, "show me")
        assert await ide.request("session/close", {"sessionId": session}) == {}
        with pytest.raises(RpcError) as relative:
            await ide.request("session/list", {"cwd": "src"})
        assert relative.value.code == -32602
        listed = (await ide.request("session/list", {"cwd": str(project)}))["sessions"]
        assert [(one["sessionId"], one["title"]) for one in listed] == [(session, "show me")]
        params: dict[str, Any] = {"sessionId": session, "cwd": str(project), "mcpServers": []}
        how = ("session/load", {}) if version == 1 else ("session/resume", {"replayFrom": {"type": "start"}})
        pending = await ide.start(how[0], {**params, **how[1]})
        answer = await pending.result(10)
        assert option(answer["configOptions"], "mode")["currentValue"] == "ask"
        assert pending.answer is not None
        told = ide.log.updates(session, after=pending.sent.index, before=pending.answer.index)
        words = "".join(u["content"]["text"] for u in told if u["sessionUpdate"] == "agent_message_chunk")
        assert words == turn.text == "firstthen"
        assert {u["toolCallId"] for u in told if "toolCallId" in u} == {turn.card.call_id}
        if version == 1:
            asked = told[0].pop("messageId")
            assert told[0] == {"sessionUpdate": "user_message_chunk", "content": {"type": "text", "text": "show me"}}
            assert asked not in {u.get("messageId") for u in told}
        else:
            ids = {u["messageId"] for u in ide.log.updates(session) if u["sessionUpdate"] == "user_message"}
            assert len(ids) == 1, "a message keeps its id"
            assert told[-1] == {"sessionUpdate": "state_update", "state": "idle"}
            ours = [u["messageId"] for u in turn.told if u["sessionUpdate"] == "agent_message_chunk"]
            assert [u["messageId"] for u in told if u["sessionUpdate"] == "agent_message_chunk"] == ours
        assert (await ide.prompt(session)).text == "later"
        fork = await ide.request("session/fork", {**params, "mcpServers": []})
        assert fork["sessionId"] != session
        await ide.request("session/delete", {"sessionId": fork["sessionId"]})
        await ide.request("session/close", {"sessionId": session})
        quiet = await ide.start("session/resume", params)
        await quiet.result(10)
        assert quiet.answer is not None
        between = ide.log.updates(session, after=quiet.sent.index, before=quiet.answer.index)
        assert [u["sessionUpdate"] for u in between] == ([] if version == 1 else ["state_update"])
        assert await ide.request("session/delete", {"sessionId": session}) == {}
        assert (await ide.request("session/list", {}))["sessions"] == []


async def test_servers_of_the_client_are_found_and_called_over_stdio_and_over_acp(
    spawn_version: Spawn, project: Path, tmp_path: Path, version: int
):
    server = {**entry(tmp_path / "notes"), **({"type": "stdio"} if version == 2 else {})}
    script = [call(ECHO, text="heard"), RESULT, call("inside__echo", text=" too"), RESULT]
    async with spawn_version(script) as ide:
        inside = serve(ide, name="inside")
        ide.person.always("allow_once")
        await ide.initialize()
        session = await ide.new_session(project, mcpServers=[server, inside.entry])
        turn = await ide.prompt(session, timeout_s=30)
        assert turn.text == "heard too"
        assert [card.status for card in turn.cards] == ["completed"] * 2
        assert inside.wrong == []


async def test_a_person_fills_in_a_form(spawn_version: Spawn, project: Path):
    async with spawn_version([call("ask_user", question="What is its name?"), RESULT], caps=FORMS) as ide:
        ide.handlers["elicitation/create"] = Forms({"action": "accept", "content": {"answer": "Ada"}})
        session = await ide.open(project)
        assert (await ide.prompt(session)).text == "The user answers: Ada"


async def test_a_second_prompt_is_refused_in_v1_and_held_in_v2(spawn_version: Spawn, project: Path, version: int):
    async with spawn_version(
        [text("one"), call("write_file", path=str(project / "a"), content="x")], [text("two")]
    ) as ide:
        ide.person.always("allow_once")
        gate = ide.hold(ASK)
        session = await ide.open(project)
        first = await ide.start_prompt(session, "first")
        await ide.until(lambda: ide.log.count(ASK), "the question")
        second = await ide.start_prompt(session, "second")
        if version == 1:
            with pytest.raises(RpcError) as busy:
                await second.result()
            assert busy.value.code == -32600
        await ide.alive()
        assert (second.answer is None) == (version == 2)
        gate.open()
        assert (await first.turn()).text == "one"
        if version == 2:
            assert (await second.turn()).text == "two"
