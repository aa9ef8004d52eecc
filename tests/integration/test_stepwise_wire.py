"""What a constrained model's server is asked, and what becomes of answers that are no whole step; on a stub server."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest
from attrs import define, field

from punie.domain.errors import EngineError
from punie.domain.model.compaction import CompactionOrder
from punie.domain.session.events import CompactionDelta, ContextUsed
from punie.domain.session.turn import StopReason, Turn, TurnLimits
from punie.domain.tools.catalog import ToolCatalog
from punie.domain.tools.tool import ToolDescriptor
from punie.domain.values.content import Prompt
from punie_gguf.engine import LocalModelEngine, LocalModelSession, local_engine
from tests.fakes.engine_side import FakeEventSink, FakeToolDoor
from tests.stub_llama import STUB_MODEL, StubLlama, answering
from tests.stub_openai import Failure, Reply, StepSource, StubOpenAI

pytestmark = pytest.mark.anyio

CALL = Reply(text=['{"tool":"look","arg', 'uments":{"at":"a"}}'])
DONE = Reply(text=answering(["Done."]))
TOO_LONG = Failure(
    400, "request (9054 tokens) exceeds the available context size (4096 tokens)", "exceed_context_size_error"
)
LOOK = ToolDescriptor(
    "look",
    description="Looks.",
    parameters={"type": "object", "properties": {"at": {"type": "string", "format": "uri"}}, "required": ["at"]},
)


@define(eq=False)
class Talk:
    """A session on a stub server."""

    stub: StubOpenAI
    session: LocalModelSession
    door: FakeToolDoor = field(factory=lambda: FakeToolDoor(ToolCatalog([LOOK], notes="There is more.")))
    sink: FakeEventSink = field(factory=FakeEventSink)

    async def say(self, prompt: str, **limits: Any) -> StopReason:
        self.sink = FakeEventSink()
        turn = Turn(prompt, "s", Prompt.of_text(prompt), "Be brief.", TurnLimits(**limits))
        return await self.session.run(turn, tools=self.door, events=self.sink)


@asynccontextmanager
async def talking(steps: Sequence[StepSource], context_tokens: int = 32_768) -> AsyncIterator[Talk]:
    with StubOpenAI(steps) as stub:
        engine: LocalModelEngine = local_engine(STUB_MODEL, StubLlama(stub.base_url, context_tokens))
        try:
            yield Talk(stub, engine.open("s"))
        finally:
            await engine.aclose()


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def test_tools_go_out_as_a_grammar_and_as_words_and_results_as_what_the_user_says() -> None:
    async with talking([CALL, DONE]) as talk:
        assert await talk.say("Look at a.") is StopReason.END_TURN
        first, second = talk.stub.requests
    body = first.body
    assert "tools" not in body
    assert body["max_completion_tokens"] == 4096 or body["max_tokens"] == 4096
    head, schema = body["grammar"].split("start: %json ")
    assert head == "%llguidance {}\n"
    held = json.loads(schema)
    assert held["x-guidance"] == {"whitespace_flexible": False}
    assert held["$defs"]["call"]["anyOf"][0]["properties"]["arguments"]["properties"] == {"at": {"type": "string"}}
    system, user = body["messages"]
    assert system["role"] == "system"
    assert system["content"].startswith("Be brief.\n\nThere is more.\n\nEvery answer of yours is one JSON object")
    assert "- look(at: string): Looks." in system["content"]
    assert (user["role"], user["content"]) == ("user", "Look at a.")
    assert [(m["role"], m["content"]) for m in second.body["messages"][2:]] == [
        ("assistant", '{"tool":"look","arguments":{"at":"a"}}'),
        ("user", "[look result]\nlook is done."),
    ]
    assert second.body["messages"][0] == system, "what begins alike is read once"
    assert first.headers["authorization"] == "Bearer stub"


async def test_text_that_is_no_step_is_an_answer() -> None:
    async with talking([Reply(text=["Just ", "words."])]) as talk:
        assert await talk.say("one") is StopReason.END_TURN
        assert talk.sink.texts == ["Just ", "words."]


async def test_a_step_that_ends_in_the_middle_is_an_error_and_calls_nothing() -> None:
    async with talking([Reply(text=['{"tool":"look","arguments":{"at":"a"}']), DONE]) as talk:
        with pytest.raises(EngineError) as caught:
            await talk.say("one")
        assert caught.value.kind == "internal"
        assert "in the middle of a step" in caught.value.cause
        assert talk.door.calls == []
        assert await talk.say("two") is StopReason.END_TURN


async def test_a_step_that_is_too_long_ends_the_turn_with_what_was_said() -> None:
    async with talking([Reply(text=['{"answer":"It is'], finish="length"), DONE]) as talk:
        assert await talk.say("one") is StopReason.MAX_TOKENS
        assert talk.sink.text == "It is"
        await talk.say("two")
        assert talk.stub.requests[-1].body["messages"][2]["content"] == '{"answer":"It is"}'


async def test_a_history_that_is_too_long_is_summarised_in_plain_words_and_the_turn_goes_on() -> None:
    steps = [DONE, DONE, TOO_LONG, Reply(text=["They ", "spoke."]), DONE]
    async with talking(steps) as talk:
        await talk.say("one " * 400)
        await talk.say("two " * 400)
        assert await talk.say("three") is StopReason.END_TURN
        summary, last = talk.stub.requests[-2:]
    assert "grammar" not in summary.body
    assert summary.body["messages"][0]["role"] == "system"
    assert [event.text for event in talk.sink.events if isinstance(event, CompactionDelta)] == ["They ", "spoke."]
    assert "They spoke." in json.dumps(last.body["messages"])


async def test_a_small_context_is_kept_whatever_the_settings_think_it_is() -> None:
    full = Reply(text=answering(["long"]), usage=(3900, 50))
    async with talking([DONE, full, Reply(text=["Short."]), DONE], context_tokens=4096) as talk:
        await talk.say("one " * 800, compact_above_tokens=100_000)
        await talk.say("two", compact_above_tokens=100_000)
        assert {e.size_tokens for e in talk.sink.events if isinstance(e, ContextUsed)} == {4096}
        await talk.say("three", compact_above_tokens=100_000)
        assert "grammar" not in talk.stub.requests[-2].body, "that was the summary"


async def test_an_order_to_compact_and_one_to_forget_are_passed_on() -> None:
    async with talking([DONE, DONE, Reply(text=["Short."]), DONE, DONE]) as talk:
        await talk.say("one " * 800)
        await talk.say("two " * 800)
        assert await talk.session.compact(CompactionOrder("c", above_tokens=1000), events=FakeEventSink())
        talk.session.forget()
        await talk.say("three")
        assert [m["content"] for m in talk.stub.requests[-1].body["messages"][1:]] == ["three"]
