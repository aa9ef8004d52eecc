"""A key that is set up while the agent runs counts from the next prompt on, in the same conversation."""

from __future__ import annotations

import pytest

from punie.bootstrap.engines import PydanticAiEngine
from punie.domain.errors import EngineError
from punie.domain.model.provider import ModelSettings
from punie.domain.session.turn import StopReason, Turn
from punie.domain.values.content import Prompt
from punie.ports.engine import EngineSession
from tests.fakes.engine_side import FakeEventSink, FakeToolDoor
from tests.stub_openai import Failure, Recorded, Reply, Step, StubOpenAI

pytestmark = pytest.mark.anyio


def strict(request: Recorded) -> Step:
    if request.headers.get("authorization") != "Bearer right":
        return Failure(401, "Incorrect API key provided")
    return Reply(text=["yes"])


async def test_a_refused_key_is_looked_for_anew_and_the_conversation_goes_on() -> None:
    key: str | None = "right"
    with StubOpenAI([strict] * 9) as stub:
        engine = PydanticAiEngine("openai-chat:stub", reach=lambda: ModelSettings(stub.base_url, key))
        session = engine.open("s")

        async def prompt(words: str) -> StopReason:
            turn = Turn("t", "s", Prompt.of_text(words))
            return await session.run(turn, tools=FakeToolDoor(), events=FakeEventSink())

        async def refused(words: str) -> str:
            with pytest.raises(EngineError) as caught:
                await prompt(words)
            return caught.value.kind

        assert await prompt("first") is StopReason.END_TURN
        before = session.snapshot()
        key = "wrong"
        assert await prompt("second") is StopReason.END_TURN, "a key that works is not read again"
        await engine.aclose()

        other = engine.open("s", before)
        session = other
        assert await refused("third") == "auth"
        assert await refused("fourth") == "auth", "nothing has changed yet"
        key = "right"
        assert await prompt("fifth") is StopReason.END_TURN
        said = [message["content"] for message in stub.requests[-1].body["messages"] if message["role"] == "user"]
        assert said == ["first", "fifth"], "what was said is kept, and what was refused is not"
        await engine.aclose()


async def test_sessions_that_share_an_engine_share_the_new_key() -> None:
    key = "wrong"
    with StubOpenAI([strict] * 9) as stub:
        engine = PydanticAiEngine("openai-chat:stub", reach=lambda: ModelSettings(stub.base_url, key))
        sessions = [engine.open("a"), engine.open("b")]
        for session in sessions:
            with pytest.raises(EngineError):
                await session.run(Turn("t", "s", Prompt.of_text("x")), tools=FakeToolDoor(), events=FakeEventSink())
        key = "right"
        for session in (*sessions, engine.open("c")):
            turn = Turn("t", "s", Prompt.of_text("x"))
            assert await session.run(turn, tools=FakeToolDoor(), events=FakeEventSink()) is StopReason.END_TURN
        await engine.aclose()


async def test_a_new_session_asks_the_server_that_was_set_up_meanwhile() -> None:
    with StubOpenAI([Reply(text=["old"])] * 3) as old, StubOpenAI([Reply(text=["new"])] * 3) as new:
        address = old.base_url
        engine = PydanticAiEngine("openai-chat:stub", reach=lambda: ModelSettings(address, "k"))

        async def said(session: EngineSession) -> str:
            sink = FakeEventSink()
            await session.run(Turn("t", "s", Prompt.of_text("x")), tools=FakeToolDoor(), events=sink)
            return sink.text

        first = engine.open("a")
        assert await said(first) == "old"
        address = new.base_url
        assert await said(engine.open("b")) == "new"
        assert await said(first) == "old", "a conversation that works stays where it is"
        await engine.aclose()
