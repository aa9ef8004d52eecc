"""A second prompt joins the turn that runs: over real pipes, v1 and v2, with a scripted model behind real HTTP."""

from __future__ import annotations

import base64
import contextlib
import json
import signal
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.e2e.conftest import Spawn
from tests.e2e.raw_client import RawClient, RpcError
from tests.e2e.scripts import call, sleep, text
from tests.integration.engine_bench import dangling
from tests.stub_openai import Call, Recorded, Reply, StubOpenAI

pytestmark = pytest.mark.anyio

MODEL = "openai-chat:stub"
START_S = 60.0
STEER = "_session/steering"
RED_DOT = base64.b64encode(b"\x89PNG made up").decode()


def steering(session: str, words: str, *blocks: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"sessionId": session, "prompt": [{"type": "text", "text": words}, *blocks], **more}


def said(request: Recorded) -> list[tuple[str, str]]:
    """The conversation that the request sent: roles with their texts, or the names of the calls."""
    return [
        (
            message["role"],
            json.dumps(message["content"]) if message.get("content") else message["tool_calls"][0]["function"]["name"],
        )
        for message in request.messages
        if message["role"] != "system"
    ]


def unchanged(earlier: Recorded, later: Recorded) -> bool:
    """Whether the later request begins with all that the earlier one sent."""
    return later.messages[: len(earlier.messages)] == earlier.messages


async def test_words_join_a_turn_at_its_next_request_behind_the_results_with_the_prefix_as_it_was(
    spawn_version: Spawn, project: Path, version: int
) -> None:
    slow = Reply(calls=[Call("run_command", {"command": "until [ -e go ]; do sleep 0.05; done"})])
    streamed = Reply(
        text=["one ", "two ", "three"], calls=[Call("read_file", {"path": "notes.txt"})], chunk_delay_s=0.3
    )
    last = Reply(text=["almost ", "done"], chunk_delay_s=0.3)
    with StubOpenAI([slow, streamed, last, Reply(text=["all done"])]) as stub:
        async with spawn_version(model=MODEL, env=stub.environment(), caps={}) as ide:
            ide.person.will("allow_once")
            session = await ide.open(project)
            running = await ide.start_prompt(session, "begin")
            await ide.until(lambda: "in_progress" in json.dumps(ide.log.updates(session)), "the command", START_S)
            picture = {"type": "image", "mimeType": "image/png", "data": RED_DOT}
            both = [
                await ide.start(STEER, steering(session, "use tabs", picture)),
                await ide.start(STEER, steering(session, "and be quick", idleBehavior="promptRequired")),
            ]
            assert [await one.result() for one in both] == [{"outcome": "injected"}] * 2
            (project / "go").write_text("", "utf-8")
            await ide.until(lambda: "two " in json.dumps(ide.log.updates(session)), "the answer's stream", START_S)
            assert await ide.request(STEER, steering(session, "while you talk")) == {"outcome": "injected"}
            await ide.until(lambda: "almost " in json.dumps(ide.log.updates(session)), "the last answer", START_S)
            assert await ide.request(STEER, steering(session, "one more thing")) == {"outcome": "injected"}
            turn = await running.turn(START_S)
            assert turn.stop == "end_turn"
            assert turn.text.endswith("almost doneall done")
            assert turn.result["_meta"]["punie.dev"]["usage"]["requests"] == 4
            idle = await ide.request(STEER, steering(session, "x", idleBehavior="promptRequired"))
            assert idle == {"outcome": "promptRequired", "reason": "noRunningTurn"}
            shown = [one for one in ide.log.updates(session) if one["sessionUpdate"] == "user_message"]
            assert len(shown) == (5 if version == 2 else 0)
        first, second, third, fourth = stub.requests
    assert unchanged(first, second)
    assert unchanged(second, third)
    assert unchanged(third, fourth)
    assert not any(dangling(request.messages) for request in stub.requests)
    roles = [role for role, _ in said(fourth)]
    assert [role for role in roles if role != "user"] == ["assistant", "tool", "assistant", "tool", "assistant"]
    told = [words for role, words in said(fourth) if role == "user"]
    assert "begin" in told[0]
    assert "use tabs" in told[1]
    assert RED_DOT in told[1]
    assert "and be quick" in json.dumps(said(second))
    assert "while you talk" in json.dumps(said(third))
    assert "one more thing" in told[-1]
    assert roles[-1] == "user"
    assert json.dumps(said(fourth)).index("three") < json.dumps(said(fourth)).index("while you talk")


async def test_words_outlive_a_kill_between_their_acceptance_and_the_next_request_and_what_waits_does_not(
    spawn_version: Spawn, project: Path, version: int
) -> None:
    slow = Reply(calls=[Call("run_command", {"command": "sleep 60"})])
    with StubOpenAI([slow, Reply(text=["I know"])]) as stub:
        env = {**stub.environment(), **WAITS}
        async with spawn_version(model=MODEL, env=env, caps={}, exits=-signal.SIGKILL) as ide:
            session = await ide.open(project)
            await ide.start_prompt(session, "begin")
            await ide.until(lambda: "in_progress" in json.dumps(ide.log.updates(session)), "the command", START_S)
            assert await ide.request(STEER, steering(session, "mind the gap")) == {"outcome": "injected"}
            waits = await ide.start_prompt(session, "never begun")
            await ide.request("session/list", {}, timeout_s=START_S)  # its answer comes after the prompt was taken
            assert waits.answer is None
            await ide.signal(signal.SIGKILL)
            await ide.exit()
        async with spawn_version(model=MODEL, env=stub.environment(), caps={}) as ide:
            await ide.initialize()
            loading: dict[str, Any] = {"sessionId": session, "cwd": str(project), "mcpServers": []}
            again = {1: "session/load", 2: "session/resume"}[version]
            if version == 2:
                loading["replayFrom"] = {"type": "start"}
            await (await ide.start(again, loading)).result(START_S)
            shown = [one["content"] for one in ide.log.updates(session) if "user_message" in one["sessionUpdate"]]
            blocks = shown if version == 1 else [block for content in shown for block in content]
            assert [block["text"] for block in blocks] == ["begin", "mind the gap"]
            assert (await ide.prompt(session, "go on", timeout_s=START_S)).text == "I know"
        told = said(stub.requests[-1])
    assert not dangling(stub.requests[-1].messages)
    assert "never begun" not in json.dumps(told)
    roles = [(role, words) for role, words in told if role != "user" or "mind the gap" in words]
    assert [role for role, _ in roles][:3] == ["assistant", "tool", "user"], "behind the result of the call"


async def test_words_to_a_turn_that_was_cancelled_are_part_of_the_next_prompt(
    spawn_version: Spawn, project: Path
) -> None:
    slow = Reply(calls=[Call("run_command", {"command": "sleep 60"})])
    with StubOpenAI([slow, Reply(text=["both"])]) as stub:
        async with spawn_version(model=MODEL, env=stub.environment(), caps={}) as ide:
            session = await ide.open(project)
            running = await ide.start_prompt(session, "begin")
            await ide.until(lambda: "in_progress" in json.dumps(ide.log.updates(session)), "the command", START_S)
            assert await ide.request(STEER, steering(session, "not like that")) == {"outcome": "injected"}
            await ide.cancel(session)
            assert (await running.turn(START_S)).stop == "cancelled"
            assert (await ide.prompt(session, "again", timeout_s=START_S)).text == "both"
        words = json.dumps(said(stub.requests[-1]))
    assert words.index("not like that") < words.index("again")


async def test_an_engine_without_requests_takes_the_words_as_a_further_run(spawn_version: Spawn, project: Path) -> None:
    async with spawn_version([text("alpha"), until_go()], [text("beta")], [text("gamma")]) as ide:
        ide.person.will("allow_once")
        session = await ide.open(project)
        running = await ide.start_prompt(session)
        await ide.until(lambda: "alpha" in json.dumps(ide.log.updates(session)), "the first words")
        with pytest.raises(RpcError) as refused:
            await ide.request(STEER, steering(session, "/compact"))
        assert refused.value.data["code"] == "busy"
        with pytest.raises(RpcError):
            await ide.request(STEER, steering(session, "x" * 1_100_000))
        assert await ide.request(STEER, steering(session, "and?")) == {"outcome": "injected"}
        (project / "go").write_text("", "utf-8")
        assert (await running.turn()).text == "alphabeta"
        assert await ide.request(STEER, steering(session, "a new one")) == {"outcome": "startedNewTurn"}
        await ide.until(lambda: "gamma" in json.dumps(ide.log.updates(session)), "the turn that was started")
        for wrong in ({"sessionId": "sess_none", "prompt": []}, {"sessionId": session, "prompt": "x"}, {}):
            with pytest.raises(RpcError):
                await ide.request(STEER, wrong)
        with anyio.fail_after(START_S):
            assert "there is nothing left" in await said_once_idle(ide, session)


async def said_once_idle(ide: RawClient, session: str) -> str:
    """The answer to a prompt; in version 1 nothing tells the end of a turn that steering began."""
    while True:
        with contextlib.suppress(RpcError):
            return (await ide.prompt(session)).text


def until_go() -> dict[str, Any]:
    return call("run_command", command="until [ -e go ]; do sleep 0.05; done")


WAITS = {"PUNIE_PROMPTS_WHILE_BUSY": "queue"}


async def test_prompts_wait_in_order_and_a_cancel_keeps_them(spawn: Spawn, project: Path) -> None:
    turns = [[text("alpha"), sleep(60)], [text("beta")], [text("gamma")], [text("delta"), sleep(60)], [text("six")]]
    async with spawn(*turns, env=WAITS) as ide:
        session = await ide.open(project)
        first = await ide.start_prompt(session, "a")
        await ide.until(lambda: "alpha" in json.dumps(ide.log.updates(session)), "the first words")
        second = await ide.start_prompt(session, "b \u202e\nand more")
        third = await ide.start_prompt(session, "c")
        listed = await (await ide.start_prompt(session, "/queue")).result()
        assert listed["stopReason"] == "end_turn"
        shown = json.dumps(ide.log.updates(session)[-1])
        assert "2 prompts waiting" in shown
        assert "202e" not in shown
        await ide.cancel(session)
        assert (await first.result())["stopReason"] == "cancelled"
        assert "2 prompts wait; send any prompt to go on" in json.dumps(ide.log.updates(session)[-1])
        assert (second.answer, third.answer) == (None, None)
        now = await ide.start_prompt(session, "d")
        for one in (now, second):
            assert (await one.result())["stopReason"] == "end_turn"
        await ide.until(lambda: "delta" in json.dumps(ide.log.updates(session)), "the third")
        names = ["alpha", "beta", "gamma", "delta"]
        said = [one["content"]["text"] for one in ide.log.updates(session) if "agent_message" in one["sessionUpdate"]]
        assert [one for one in said if one in names] == names
        withdrawn, cleared = await ide.start_prompt(session, "e"), await ide.start_prompt(session, "f")
        await ide.notify("$/cancel_request", {"requestId": withdrawn.id})
        assert (await withdrawn.frame()).message["error"]["code"] == -32800
        assert (await (await ide.start_prompt(session, "/queue clear")).result())["stopReason"] == "end_turn"
        assert (await cleared.result())["stopReason"] == "cancelled"
        last = [await ide.start_prompt(session, "g" * 60_000) for _ in range(18)]
        refused = [(await one.frame()).message for one in last[16:]]
        assert {one["error"]["data"]["code"] for one in refused} == {"busy"}
        assert (await third.result() if third.answer else None) is None
        await ide.request("session/close", {"sessionId": session})
        assert {(await one.result())["stopReason"] for one in (third, *last[:16])} == {"cancelled"}


async def test_a_prompt_may_join_the_turn_by_setting(spawn_version: Spawn, project: Path, version: int) -> None:
    slow = Reply(calls=[Call("run_command", {"command": "until [ -e go ]; do sleep 0.05; done"})])
    with StubOpenAI([slow, Reply(text=["done"])]) as stub:
        env = {**stub.environment(), "PUNIE_PROMPTS_WHILE_BUSY": "steer"}
        async with spawn_version(model=MODEL, env=env, caps={}) as ide:
            ide.person.will("allow_once")
            session = await ide.open(project)
            first = await ide.start_prompt(session, "begin")
            await ide.until(lambda: "in_progress" in json.dumps(ide.log.updates(session)), "the command", START_S)
            blocks = [{"type": "text", "text": "use tabs"}]
            second = await ide.start("session/prompt", {"sessionId": session, "prompt": blocks})
            if version == 2:
                joined = (await second.result(START_S))["messageId"]
                shown = [one for one in ide.log.updates(session) if one.get("messageId") == joined]
                assert [one["content"] for one in shown] == [blocks]
            blocks = [{"type": "text", "text": "/usage"}]
            command = await ide.start("session/prompt", {"sessionId": session, "prompt": blocks})
            await ide.request("session/list", {}, timeout_s=START_S)  # its answer comes after the prompts were taken
            (project / "go").write_text("", "utf-8")
            assert (await first.turn(START_S)).stop == "end_turn"
            for one in (second, command):
                assert (await one.result(START_S)).get("stopReason", "end_turn") == "end_turn"
            if version == 2:
                await ide.until(lambda: json.dumps(ide.log.updates(session)).count('"idle"') == 2, "the command's end")
        assert len(stub.requests) == 2
        assert "use tabs" in json.dumps(stub.requests[1].messages)
