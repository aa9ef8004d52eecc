"""What the model's server gets from the Pydantic AI engine: schemas, prompts, results, memory."""

from __future__ import annotations

import base64
import json
from functools import partial
from typing import Any

import anyio
import pytest

from punie.adapters.pydantic_ai import library
from punie.adapters.pydantic_ai.toolset import TurnDeps
from punie.bootstrap.engines import PydanticAiEngine
from punie.domain.model.place import ModelSettings
from punie.domain.session.events import TextDelta
from punie.domain.session.turn import StopReason, Turn, TurnLimits
from punie.domain.tools.catalog import ToolCatalog
from punie.domain.tools.tool import ToolCall, ToolDescriptor, ToolOutcome, ToolResult
from punie.domain.values.content import EmbeddedResource, Image, Prompt, ResourceLink, Text
from punie.domain.values.json_value import thaw
from tests.fakes.engine_side import FakeEventSink, FakeToolDoor, catalog_of, message_ids
from tests.integration import engine_bench
from tests.integration.engine_bench import PLACES, Talk, dangling
from tests.stub_openai import Call, Reply, StubOpenAI

pytestmark = pytest.mark.anyio

talking = partial(engine_bench.talking, PLACES["pydantic_ai"])

ODD_SCHEMA: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "title": "Odd one",
    "required": ["zebra"],
    "properties": {
        "zebra": {"title": "Z", "type": ["string", "null"], "format": "date", "pattern": "^a", "default": None},
        "apple": {"$ref": "#/$defs/thing"},
        "mango": {"oneOf": [{"const": 1.0}, {"type": "array", "items": {"type": "integer"}, "uniqueItems": True}]},
    },
    "additionalProperties": False,
    "$defs": {"thing": {"type": "object", "properties": {}, "x-own": [1, {"deep": None}]}},
    "x-vendor": {"b": 1, "a": 2},
}
PIXEL = base64.b64encode(b"\x89PNG\r\n\x1a\n").decode()


@pytest.mark.requirement("S3-22")
async def test_each_prompt_is_run_with_a_door_and_a_sink_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    steps = [Reply(calls=[Call("look")]), Reply(text=["one"]), Reply(calls=[Call("look")]), Reply(text=["two"])]
    made: list[TurnDeps] = []
    building = library.TurnDeps

    def build(*given: Any) -> TurnDeps:
        made.append(building(*given))
        return made[-1]

    async with talking(steps) as talk:
        monkeypatch.setattr(library, "TurnDeps", build)
        doors = [FakeToolDoor(catalog_of("look")), FakeToolDoor(catalog_of("look"))]
        sinks = [FakeEventSink(), FakeEventSink()]
        for number, (door, sink) in enumerate(zip(doors, sinks, strict=True)):
            turn = Turn(f"turn-{number}", "session", Prompt.of_text("go"), "", TurnLimits())
            await talk.session.run(turn, tools=door, events=sink)
            assert len(door.calls) == 1, "the first prompt's door is not used by the second"
    assert [deps.session_id for deps in made] == ["session", "session"]
    assert [deps.door for deps in made] == doors
    assert made[0] is not made[1]
    assert made[0].model is not made[1].model
    assert made[0].finished is not made[1].finished
    said = ["".join(event.text for event in sink.events if isinstance(event, TextDelta)) for sink in sinks]
    assert said == ["one", "two"]


@pytest.mark.requirement("S0-59", "M-07")
@pytest.mark.parametrize("model", ["openai-chat:gpt-4o", "openai-chat:stub", "openai-chat:deepseek-chat"])
async def test_a_tools_schema_reaches_the_server_as_the_same_json_with_the_same_key_order(model: str) -> None:
    tool = ToolDescriptor("odd", description="Odd.", parameters=ODD_SCHEMA)
    door = FakeToolDoor(ToolCatalog([tool]))
    async with talking([Reply(text=["ok"])], model=model, door=door) as talk:
        await talk.say("x")
    body = json.loads(talk.stub.requests[0].raw)
    (sent,) = body["tools"]
    assert json.dumps(sent["function"]["parameters"]) == json.dumps(ODD_SCHEMA)
    assert sent["function"] == {"name": "odd", "description": "Odd.", "parameters": ODD_SCHEMA}


async def test_a_model_that_cannot_follow_references_gets_them_inlined_and_all_else_unchanged() -> None:
    plain = {"type": "object", "title": "T", "properties": {"b": {"type": "string"}, "a": {"title": "A"}}}
    door = FakeToolDoor(
        ToolCatalog([ToolDescriptor("odd", parameters=ODD_SCHEMA), ToolDescriptor("plain", parameters=plain)])
    )
    async with talking([Reply(text=["ok"])], model="ollama:qwen3", door=door) as talk:
        await talk.say("x")
    odd, same = (tool["function"]["parameters"] for tool in talk.stub.requests[0].body["tools"])
    assert json.dumps(same) == json.dumps(plain)
    assert "$ref" not in json.dumps(odd)


@pytest.mark.requirement("R-10")
async def test_the_tools_are_listed_again_before_each_request_of_a_turn() -> None:
    door = FakeToolDoor(catalog_of("first"))

    def swap(_: ToolCall) -> ToolResult:
        door.catalog = catalog_of("second", "third")
        return ToolResult.success("swapped")

    door.answers = {"first": swap}
    steps = [Reply(calls=[Call("first")]), Reply(calls=[Call("second")]), Reply(text=["done"])]
    async with talking(steps, door=door) as talk:
        assert await talk.say("x") is StopReason.END_TURN
    names = [[tool["function"]["name"] for tool in request.body.get("tools", [])] for request in talk.stub.requests]
    assert names == [["first"], ["second", "third"], ["second", "third"]]
    assert [call.name for call in door.calls] == ["first", "second"]


@pytest.mark.requirement("R-08", "S3-28")
async def test_the_model_reads_what_came_of_each_call_and_is_told_which_failed() -> None:
    door = FakeToolDoor(
        catalog_of("good", "bad", "denied", "linked", "empty", "data"),
        {
            "good": ToolResult.success("shown", content=(Text("for people"),)),
            "bad": ToolResult.failure('It said "no".'),
            "denied": ToolResult.denied("The user rejected it."),
            "linked": ToolResult(ToolOutcome.SUCCEEDED, (EmbeddedResource("file:///a", text="inside"),)),
            "empty": ToolResult(ToolOutcome.SUCCEEDED),
            "data": ToolResult(ToolOutcome.SUCCEEDED, structured={"b": [1], "a": "ü"}),
        },
    )
    names = ("good", "bad", "denied", "linked", "empty", "data")
    async with talking([Reply(calls=[Call(name) for name in names]), Reply(text=["done"])], door=door) as talk:
        assert await talk.say("x") is StopReason.END_TURN
        results = [message["content"] for message in talk.messages() if message["role"] == "tool"]
    assert results[0] == "shown"
    assert json.loads(results[1]) == {"error": 'It said "no".'}
    assert results[2:] == ["The user rejected it.", "inside", "Done; there is no output.", '{"b": [1], "a": "ü"}']


async def test_an_image_in_a_result_reaches_the_model() -> None:
    picture = ToolResult(ToolOutcome.SUCCEEDED, (Text("a chart"), Image(PIXEL, "image/png"), Image("%%%", "image/png")))
    door = FakeToolDoor(catalog_of("draw"), {"draw": picture})
    async with talking([Reply(calls=[Call("draw")]), Reply(text=["done"])], door=door) as talk:
        assert await talk.say("x") is StopReason.END_TURN
        sent = json.dumps(talk.messages())
    assert "a chart" in sent
    assert sent.count(f"data:image/png;base64,{PIXEL}") == 1


@pytest.mark.requirement("INTERFACES-2")
async def test_broken_json_reaches_the_door_as_written_and_the_next_request_is_valid_json() -> None:
    steps = [Reply(calls=[Call("look", '{"path": "a'), Call("look", "NaN"), Call("look", "")]), Reply(text=["done"])]
    async with talking(steps, door=FakeToolDoor(catalog_of("look"))) as talk:
        assert await talk.say("x") is StopReason.END_TURN
        assert [call.arguments for call in talk.door.calls] == ['{"path": "a', "NaN", {}]
        written = [call["function"]["arguments"] for m in talk.messages() for call in m.get("tool_calls") or ()]
    assert all(isinstance(json.loads(text), dict) for text in written)


@pytest.mark.requirement("DESIGN-4")
async def test_arguments_too_deep_for_us_are_refused_at_the_door_and_not_by_a_crash() -> None:
    deep = '{"a":' * 300 + "1" + "}" * 300
    async with talking(
        [Reply(calls=[Call("look", deep)]), Reply(text=["ok"])], door=FakeToolDoor(catalog_of("look"))
    ) as talk:
        assert await talk.say("x") is StopReason.END_TURN
        (call,) = talk.door.calls
    assert "nests deeper" in str(call.arguments)


@pytest.mark.requirement("M-05", "A-11")
async def test_calls_that_share_an_id_are_told_apart_and_each_gets_its_own_result() -> None:
    same = [Call("look", {"n": n}, id="call_0") for n in range(3)]
    door = FakeToolDoor(catalog_of("look"), {"look": lambda call: ToolResult.success(f"result {thaw(call.arguments)}")})
    async with talking([Reply(calls=same), Reply(text=["done"])], door=door) as talk:
        assert await talk.say("x") is StopReason.END_TURN
        messages = talk.messages()
    assert len({call.id for call in door.calls}) == 3
    assert not dangling(messages)
    assert [message["content"] for message in messages if message["role"] == "tool"] == [
        f"result {{'n': {n}}}" for n in range(3)
    ]


@pytest.mark.requirement("S3-29")
async def test_thoughts_and_text_stream_in_order_and_each_answer_is_a_message_of_its_own() -> None:
    steps = [Reply(thoughts=["I ", "think"], text=["So ", "look"], calls=[Call("look")]), Reply(text=["Do", "ne"])]
    async with talking(steps, door=FakeToolDoor(catalog_of("look"))) as talk:
        await talk.say("x")
    assert talk.sink.thoughts == ["I ", "think"]
    assert talk.sink.texts == ["So ", "look", "Do", "ne"]
    ids = message_ids(talk.sink.events)
    assert len(set(ids[:4])) == len(set(ids[4:])) == 1
    assert ids[0] != ids[4]


@pytest.mark.requirement("M-09")
async def test_the_second_prompt_remembers_the_first_and_instructions_come_once() -> None:
    async with talking([Reply(text=["one"]), Reply(text=["two"])]) as talk:
        await talk.say("my name is Ann", instructions="OLD RULES")
        await talk.say("what is my name?", instructions="NEW RULES")
        assert talk.roles(0) == ["system", "user"]
        assert [m["content"] for m in talk.messages()] == ["NEW RULES", "my name is Ann", "one", "what is my name?"]
        assert b"RULES" not in (talk.session.snapshot() or b"")


@pytest.mark.requirement("S3-21")
async def test_the_blocks_of_a_prompt_arrive_in_order_and_a_link_is_only_its_address() -> None:
    prompt = Prompt(
        (
            Text("what does"),
            ResourceLink("file:///p/utils.py", "utils.py"),
            EmbeddedResource("file:///p/a.txt", text="the content"),
            Text("do?"),
            EmbeddedResource("file:///p/a.bin", blob=PIXEL, mime_type="application/octet-stream"),
        )
    )
    async with talking([Reply(text=["ok"])]) as talk:
        await talk.say(prompt)
        (message,) = talk.messages()
    assert message["content"].splitlines() == [
        "what does",
        "[utils.py](file:///p/utils.py)",
        '<resource uri="file:///p/a.txt">',
        "the content",
        "</resource>",
        "do?",
        "[attached: file:///p/a.bin, application/octet-stream; its bytes are not shown]",
    ]


async def test_images_of_a_prompt_are_sent_as_images_and_broken_ones_as_a_remark() -> None:
    prompt = Prompt(
        (
            Text("look"),
            Image(PIXEL, "image/png"),
            Image("not base64!", "image/png"),
            EmbeddedResource("file:///b.png", blob=PIXEL, mime_type="image/png"),
        )
    )
    async with talking([Reply(text=["ok"])]) as talk:
        await talk.say(prompt)
        (message,) = talk.messages()
    kinds = [part["type"] for part in message["content"]]
    assert kinds == ["text", "image_url", "text", "image_url"]
    assert message["content"][1]["image_url"]["url"] == f"data:image/png;base64,{PIXEL}"


async def test_halves_of_surrogate_pairs_do_not_break_the_request() -> None:
    door = FakeToolDoor(catalog_of("look"), {"look": ToolResult.success("a\ud800b")})
    async with talking([Reply(calls=[Call("look")]), Reply(text=["ok"])], door=door) as talk:
        assert await talk.say("c\udfffd", instructions="e\ud800f") is StopReason.END_TURN
        assert [message["content"] for message in talk.messages() if message["role"] != "assistant"] == [
            "e?f",
            "c?d",
            "a?b",
        ]


async def test_a_tool_may_be_called_as_the_librarys_own_ones_are() -> None:
    names = ("search_tools", "load_capability", "final_result")
    door = FakeToolDoor(catalog_of(*names))
    async with talking([Reply(calls=[Call(name) for name in names]), Reply(text=["ok"])], door=door) as talk:
        assert await talk.say("x") is StopReason.END_TURN
    assert sorted(call.name for call in door.calls) == sorted(names)


@pytest.mark.requirement("S0-32", "DC-05")
async def test_two_sessions_of_one_engine_at_once_keep_their_words_tools_and_history_apart() -> None:
    scripts = {
        key: [Reply(text=[key], calls=[Call(f"tool_{key}")], chunk_delay_s=0.01), Reply(text=[f"{key} done"])]
        for key in ("alpha", "beta")
    }
    with StubOpenAI(conversations=scripts) as stub:
        engine = PydanticAiEngine("openai-chat:stub", ModelSettings(base_url=stub.base_url, api_key="k"))
        talks = {key: Talk(stub, engine, engine.open(key), FakeToolDoor(catalog_of(f"tool_{key}"))) for key in scripts}
        async with anyio.create_task_group() as tasks:
            for key, talk in talks.items():
                tasks.start_soon(talk.say, f"I am {key}")
        await engine.aclose()
    for key, talk in talks.items():
        assert talk.sink.text == f"{key}{key} done"
        assert [call.name for call in talk.door.calls] == [f"tool_{key}"]
        other = "beta" if key == "alpha" else "alpha"
        assert other.encode() not in (talk.session.snapshot() or b"")


async def test_one_http_client_serves_all_turns_and_is_closed_with_the_engine() -> None:
    async with talking([Reply(text=["one"]), Reply(text=["two"])]) as talk:
        await talk.say("x")
        provider = talk.engine.load().model.provider
        assert provider is not None
        client = provider._own_http_client
        await talk.say("y")
        await talk.session.aclose()
        assert provider._own_http_client is client
        assert client is not None
        assert not client.is_closed
    assert client.is_closed
