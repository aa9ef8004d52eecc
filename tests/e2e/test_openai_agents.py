"""The setting `engine`: the Agents SDK behind the wire, and a session that changes hands (issue 7, deliver 7)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.crashes.requests import invalid
from tests.e2e.conftest import Spawn
from tests.e2e.raw_client import RawClient, RpcError
from tests.e2e.scripts import text
from tests.stub_openai import Call, Failure, Recorded, Reply, StubOpenAI

pytestmark = pytest.mark.anyio

MODEL = "openai-chat:stub"
START_S = 30.0
AGENTS = {"PUNIE_ENGINE": "openai-agents"}


def told(request: Recorded) -> str:
    """Its messages less Punie's instructions."""
    return json.dumps([message for message in request.messages if message["role"] != "system"])


async def load(ide: RawClient, session: str, project: Path) -> None:
    await ide.initialize()
    pending = await ide.start("session/load", {"sessionId": session, "cwd": str(project), "mcpServers": []})
    await pending.result(START_S)


async def test_a_session_goes_from_one_engine_to_the_other_and_back(spawn: Spawn, project: Path) -> None:
    path = str(project / "notes.txt")
    calls = [Call("read_file", {"path": path}), Call("made_up", {})]
    steps = [
        Reply(thoughts=["hm"], text=["I ", "look."], calls=calls),
        Reply(text=["one, two"]),
        Reply(text=["again"]),
        Reply(text=["still"]),
    ]
    with StubOpenAI(steps) as stub:
        async with spawn(model=MODEL, env={**stub.environment(), **AGENTS}) as ide:
            session = await ide.open(project)
            turn = await ide.prompt(session, "Read the notes.", timeout_s=START_S)
            assert turn.text == "I look.one, two"
            assert [card.statuses[-1] for card in turn.cards] == ["completed", "failed"]
            assert "Agents" in stub.requests[0].headers["user-agent"], "it is the SDK that asks"
        for environment, prompt, answer in (({}, "Once more.", "again"), (AGENTS, "And now?", "still")):
            async with spawn(model=MODEL, env={**stub.environment(), **environment}) as ide:
                await load(ide, session, project)
                assert (await ide.prompt(session, prompt, timeout_s=START_S)).text == answer
        last = stub.requests[-1]
        assert "Agents" in last.headers["user-agent"]
        assert "Agents" not in stub.requests[-2].headers["user-agent"]
        assert invalid(last.messages) == []
        known = (
            "Read the notes.",
            "I look.",
            "2|two\\n3|three",
            "made_up",
            "one, two",
            "Once more.",
            "again",
            "And now?",
        )
        assert [words for words in known if words not in told(last)] == []


async def test_a_wrong_key_is_an_error_that_asks_for_credentials_and_another_provider_is_refused(
    spawn: Spawn, project: Path
) -> None:
    with StubOpenAI([Failure(401)]) as stub:
        async with spawn(model=MODEL, env={**stub.environment(), **AGENTS}) as ide:
            session = await ide.open(project)
            with pytest.raises(RpcError) as caught:
                await ide.prompt(session, "hello", timeout_s=START_S)
            assert caught.value.code == -32000
            assert "OPENAI_API_KEY" in str(caught.value)
    async with spawn(model="anthropic:claude-sonnet-4-5", env=AGENTS) as ide:
        session = await ide.open(project)
        with pytest.raises(RpcError) as caught:
            await ide.prompt(session, "hello", timeout_s=START_S)
        assert caught.value.code == -32603
        assert 'engine = "pydantic-ai"' in str(caught.value)


async def test_a_script_and_no_model_do_not_care_which_engine_is_set(spawn: Spawn, project: Path) -> None:
    async with spawn([text("played")], env=AGENTS) as ide:
        assert (await ide.prompt(await ide.open(project), "go")).text == "played"
