"""How a turn of the Pydantic AI engine ends, and what the next request looks like then."""

from __future__ import annotations

import json

import anyio
import anyio.to_thread
import pytest

from punie.domain.errors import EngineError
from punie.domain.session.events import TextDelta
from punie.domain.session.turn import StopReason, TurnLimits
from punie.domain.tools.tool import ToolResult
from tests.fakes.engine_side import FakeToolDoor, catalog_of
from tests.fakes.gate import Gate
from tests.integration.pydantic_ai_bench import Talk, dangling, talking
from tests.stub_openai import Call, Failure, Reply

pytestmark = pytest.mark.anyio

DOWN = [Failure(500)] * 3  # the client library tries again twice by itself


async def cancel_when(talk: Talk, prompt: str, arrived: anyio.Event) -> None:
    """Run a turn, and cancel it once the event is set."""
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(talk.say, prompt)
        with anyio.fail_after(5):
            await arrived.wait()
        tasks.cancel_scope.cancel()


async def cancel_once_it_said(talk: Talk, prompt: str, text: str, requests: int = 1) -> None:
    """Run a turn, and cancel it once that text has come out."""
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(talk.say, prompt)
        with anyio.fail_after(5):
            while text not in talk.sink.text:
                await anyio.lowlevel.checkpoint()
            await anyio.to_thread.run_sync(talk.stub.wait_for_requests, requests)
        tasks.cancel_scope.cancel()


@pytest.mark.requirement("A-06", "M-10")
async def test_a_cancel_amid_two_calls_keeps_the_finished_one_and_closes_the_other() -> None:
    gate = Gate()
    door = FakeToolDoor(catalog_of("fast", "slow"), {"fast": ToolResult.success("FAST RESULT")}, {"slow": gate})
    steps = [Reply(text=["Both."], calls=[Call("fast"), Call("slow")]), Reply(text=["next"])]
    async with talking(steps, door=door) as talk:
        await cancel_when(talk, "first", gate.arrived)
        assert door.finished == ["fast"]
        assert await talk.say("second") is StopReason.END_TURN
        messages = talk.messages()
    assert not dangling(messages)
    assert talk.roles() == ["user", "assistant", "tool", "tool", "user"]
    assert messages[1]["content"] == "Both."
    assert messages[2]["content"] == "FAST RESULT"
    assert "interrupted" in messages[3]["content"]


@pytest.mark.requirement("A-06")
async def test_a_cancel_amid_the_answer_keeps_its_text_and_drops_the_half_written_call() -> None:
    half = Reply(text=["I will ", "read"], calls=[Call("read_file", {"path": "a"}, pieces=2)], then="hang")
    async with talking([half, Reply(text=["next"])]) as talk:
        await cancel_once_it_said(talk, "first", "I will read")
        assert await talk.say("second") is StopReason.END_TURN
        assert [(m["role"], m["content"]) for m in talk.messages()] == [
            ("user", "first"),
            ("assistant", "I will read"),
            ("user", "second"),
        ]
        assert not any("tool_calls" in message for message in talk.messages())
        assert await anyio.to_thread.run_sync(talk.stub.requests[0].dropped.wait, 5), "the server saw us leave"


@pytest.mark.requirement("A-06")
async def test_a_cancel_before_the_first_word_keeps_the_prompt() -> None:
    async with talking([Reply(text=["never"], delay_s=30), Reply(text=["next"])]) as talk:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(talk.say, "first")
            await anyio.to_thread.run_sync(talk.stub.wait_for_requests, 1)
            tasks.cancel_scope.cancel()
        assert await talk.say("second") is StopReason.END_TURN
        said = json.dumps(talk.messages())
    assert "first" in said
    assert "second" in said
    assert set(talk.roles()) == {"user"}


@pytest.mark.requirement("A-06")
async def test_a_cancel_amid_the_second_answer_keeps_the_tools_result() -> None:
    door = FakeToolDoor(catalog_of("look"), {"look": ToolResult.success("SEEN")})
    steps = [Reply(calls=[Call("look")]), Reply(text=["So "], then="hang"), Reply(text=["next"])]
    async with talking(steps, door=door) as talk:
        await cancel_once_it_said(talk, "first", "So ", requests=2)
        assert await talk.say("second") is StopReason.END_TURN
        messages = talk.messages()
    assert not dangling(messages)
    assert talk.roles() == ["user", "assistant", "tool", "assistant", "user"]
    assert [message["content"] for message in messages[2:]] == ["SEEN", "So ", "second"]


@pytest.mark.requirement("A-06", "M-09")
async def test_a_cancelled_turn_survives_its_snapshot() -> None:
    gate = Gate()
    steps = [Reply(calls=[Call("slow")]), Reply(text=["next"])]
    async with talking(steps, door=FakeToolDoor(catalog_of("slow"), gates={"slow": gate})) as talk:
        await cancel_when(talk, "first", gate.arrived)
        talk.session = talk.engine.open("session", talk.session.snapshot())
        assert await talk.say("second") is StopReason.END_TURN
        assert not dangling(talk.messages())
        assert talk.roles() == ["user", "assistant", "tool", "user"]


async def test_a_cancel_reaches_every_running_tool_before_the_turn_is_over() -> None:
    gates = {name: Gate() for name in ("a", "b", "c")}
    door = FakeToolDoor(catalog_of(*gates), gates=gates)
    async with talking([Reply(calls=[Call(name) for name in gates])], door=door) as talk:
        await cancel_when(talk, "first", gates["c"].arrived)
        for gate in gates.values():
            gate.opened.set()
        await anyio.wait_all_tasks_blocked()
    assert door.finished == []


@pytest.mark.requirement("DESIGN-4")
async def test_a_server_error_after_a_tool_ran_keeps_what_was_done() -> None:
    door = FakeToolDoor(catalog_of("write"), {"write": ToolResult.success("WRITTEN")})
    async with talking([Reply(calls=[Call("write")]), *DOWN, Reply(text=["next"])], door=door) as talk:
        with pytest.raises(EngineError, match="HTTP 500"):
            await talk.say("first")
        assert await talk.say("second") is StopReason.END_TURN
        messages = talk.messages()
    assert not dangling(messages)
    assert [message["content"] for message in messages if message["role"] in {"tool", "user"}] == [
        "first",
        "WRITTEN",
        "second",
    ]


async def test_a_connection_that_breaks_amid_the_answer_keeps_the_text_that_was_shown() -> None:
    async with talking([Reply(text=["half"], then="reset", chunk_delay_s=0.02), Reply(text=["next"])]) as talk:
        with pytest.raises(EngineError) as caught:
            await talk.say("first")
        assert caught.value.kind == "connection"
        assert talk.sink.text == "half"
        assert await talk.say("second") is StopReason.END_TURN
        assert [m["content"] for m in talk.messages()] == ["first", "half", "second"]


async def test_a_prompt_that_the_server_rejects_is_forgotten_so_that_it_poisons_nothing() -> None:
    steps = [Reply(text=["one"]), Failure(400, "image input is not supported"), Reply(text=["three"])]
    async with talking(steps) as talk:
        await talk.say("first")
        with pytest.raises(EngineError):
            await talk.say("poison")
        await talk.say("third")
        assert [m["content"] for m in talk.messages()] == ["first", "one", "third"]


@pytest.mark.requirement("A-08", "M-11")
async def test_the_limit_of_requests_ends_the_turn_with_its_own_reason_and_the_next_turn_goes_on() -> None:
    steps = [*(Reply(calls=[Call("look")]) for _ in range(3)), Reply(text=["next"])]
    async with talking(steps, door=FakeToolDoor(catalog_of("look"))) as talk:
        assert await talk.say("first", limits=TurnLimits(max_requests=3)) is StopReason.MAX_TURN_REQUESTS
        assert len(talk.door.calls) == 3
        assert len(talk.stub.requests) == 3
        assert await talk.say("second") is StopReason.END_TURN
        assert not dangling(talk.messages())
        assert talk.roles().count("tool") == 3


async def test_more_requests_than_the_librarys_own_default_limit_are_no_end() -> None:
    steps = [*(Reply(calls=[Call("look")]) for _ in range(60)), Reply(text=["done"])]
    async with talking(steps, door=FakeToolDoor(catalog_of("look"))) as talk:
        assert await talk.say("first") is StopReason.END_TURN
        assert talk.sink.usages[-1].requests == 61


@pytest.mark.requirement("A-08")
async def test_an_answer_cut_at_the_token_limit_says_so_and_its_cut_call_is_not_run() -> None:
    cut = Reply(text=["The start"], calls=[Call("write", '{"path": "a", "content": "hal')], finish="length")
    async with talking([cut, Reply(text=["next"])], door=FakeToolDoor(catalog_of("write"))) as talk:
        assert await talk.say("first") is StopReason.MAX_TOKENS
        assert talk.door.calls == []
        assert talk.sink.usages[-1].output_tokens == 5
        assert await talk.say("second") is StopReason.END_TURN
        assert [m["content"] for m in talk.messages()] == ["first", "The start", "second"]


@pytest.mark.requirement("A-08")
@pytest.mark.parametrize("thoughts", [(), ("hm",)])
async def test_an_answer_cut_before_its_first_word_says_so_too(thoughts: tuple[str, ...]) -> None:
    async with talking([Reply(thoughts=thoughts, finish="length"), Reply(text=["next"])]) as talk:
        assert await talk.say("first") is StopReason.MAX_TOKENS
        assert await talk.say("second") is StopReason.END_TURN


@pytest.mark.requirement("A-08")
async def test_a_refusal_is_a_refusal_and_its_prompt_is_not_sent_again() -> None:
    async with talking([Reply(text=["I"], finish="content_filter"), Reply(text=["next"])]) as talk:
        assert await talk.say("bad words") is StopReason.REFUSAL
        assert await talk.say("second") is StopReason.END_TURN
        assert [m["content"] for m in talk.messages()] == ["second"]


async def test_a_refusal_after_a_tool_ran_keeps_what_was_done() -> None:
    steps = [Reply(calls=[Call("write")]), Reply(finish="content_filter"), Reply(text=["next"])]
    async with talking(steps, door=FakeToolDoor(catalog_of("write"))) as talk:
        assert await talk.say("first") is StopReason.REFUSAL
        assert await talk.say("second") is StopReason.END_TURN
        assert talk.roles() == ["user", "assistant", "tool", "user"]


@pytest.mark.parametrize("thoughts", [(), ("all is done",)])
async def test_a_model_with_nothing_more_to_say_ends_the_turn(thoughts: tuple[str, ...]) -> None:
    steps = [Reply(calls=[Call("look")]), Reply(thoughts=thoughts), Reply(text=["next"])]
    async with talking(steps, door=FakeToolDoor(catalog_of("look"))) as talk:
        assert await talk.say("first") is StopReason.END_TURN
        assert len(talk.stub.requests) == 2
        assert await talk.say("second") is StopReason.END_TURN


async def test_usage_is_the_turns_total_and_has_a_cost_where_the_price_is_known() -> None:
    steps = [Reply(calls=[Call("look")], usage=(1000, 100)), Reply(text=["done"], usage=(2000, 50))]
    async with talking([*steps, *steps], model="openai-chat:gpt-4o", door=FakeToolDoor(catalog_of("look"))) as talk:
        await talk.say("x")
        first, last = talk.sink.usages
        await talk.say("y")
        again = talk.sink.usages[-1]
    assert (first.input_tokens, first.output_tokens, first.requests) == (1000, 100, 1)
    assert (last.input_tokens, last.output_tokens, last.requests) == (3000, 150, 2)
    assert last.cost_usd is not None
    assert first.cost_usd is not None
    assert 0 < first.cost_usd < last.cost_usd < 1
    assert again == last, "each turn counts from zero"


async def test_usage_has_no_cost_where_no_price_is_known_and_none_at_all_is_zero() -> None:
    async with talking([Reply(text=["done"], usage=None)]) as talk:
        await talk.say("x")
    (usage,) = talk.sink.usages
    assert (usage.input_tokens, usage.output_tokens, usage.cost_usd) == (0, 0, None)


async def test_nothing_is_said_after_the_turn_is_over() -> None:
    async with talking([Reply(text=["a"] * 50)]) as talk:
        await talk.say("x")
        events = list(talk.sink.events)
        await anyio.wait_all_tasks_blocked()
        assert talk.sink.events == events
        assert sum(isinstance(event, TextDelta) for event in events) == 50
