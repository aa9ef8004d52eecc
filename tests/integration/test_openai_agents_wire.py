"""What the model's server gets from the engine on the Agents SDK alone, beside test_engine_wire.py."""

from __future__ import annotations

import json
from functools import partial

import pytest

from punie.commands.setup.person import try_model
from punie.domain.model.provider import Effort, ModelSettings
from punie.domain.session.turn import StopReason
from punie.domain.tools.catalog import SearchableOffer, ToolCatalog
from punie.domain.tools.tool import ToolOutcome, ToolResult
from punie.domain.values.content import Image, Text
from tests.fakes.engine_side import FakeToolDoor, catalog_of
from tests.integration import engine_bench
from tests.integration.engine_bench import BOTH, CHAT, KEY, PLACES, RESPONSES
from tests.integration.test_engine_wire import PIXEL, tools_of
from tests.stub_openai import Call, Failure, Reply, StubOpenAI

pytestmark = pytest.mark.anyio

talking = partial(engine_bench.talking, PLACES["openai_agents-chat"])


async def test_what_a_provider_might_search_itself_is_told_in_our_own_form() -> None:
    """This engine knows no search of a provider's: it sends the catalogue's tools and notes as any engine may."""
    offer = SearchableOffer((), tuple(catalog_of("hidden")), "SEARCH THERE")
    catalog = ToolCatalog(catalog_of("search_tools"), "hidden: one line", searchable=offer)
    async with talking([Reply(text=["ok"])], door=FakeToolDoor(catalog), model=RESPONSES) as talk:
        await talk.say("x")
    assert [tool["name"] for tool in tools_of(talk.stub.requests[0])] == ["search_tools"]
    assert talk.stub.requests[0].body["instructions"] == "hidden: one line"


@pytest.mark.parametrize("model", BOTH)
async def test_an_image_in_a_result_reaches_the_model_behind_all_results(model: str) -> None:
    picture = ToolResult(ToolOutcome.SUCCEEDED, (Text("a chart"), Image(PIXEL, "image/png"), Image("%%%", "image/png")))
    door = FakeToolDoor(catalog_of("draw", "look"), {"draw": picture})
    steps = [Reply(calls=[Call("draw"), Call("look")]), Reply(text=["done"])]
    async with talking(steps, door=door, model=model) as talk:
        assert await talk.say("x") is StopReason.END_TURN
        assert [who for who, _ in talk.told()] == ["user", "call", "call", "result", "result", "user"]
        assert json.dumps(talk.messages()).count(f"data:image/png;base64,{PIXEL}") == 1


@pytest.mark.parametrize("depth", [300, 100_000])
async def test_arguments_too_deep_for_us_are_refused_at_the_door_and_not_by_a_crash(depth: int) -> None:
    deep = '{"a":' * depth + "1" + "}" * depth
    door = FakeToolDoor(catalog_of("look"))
    async with talking([Reply(calls=[Call("look", deep)]), Reply(text=["ok"])], door=door) as talk:
        assert await talk.say("x") is StopReason.END_TURN
        (call,) = talk.door.calls
    assert "nests deeper" in str(call.arguments) or call.arguments == deep


async def test_halves_of_surrogate_pairs_do_not_break_the_request() -> None:
    door = FakeToolDoor(catalog_of("look"), {"look": ToolResult.success("a\ud800b")})
    steps = [Reply(text=["g\udc00h"], calls=[Call("look", '{"q": "\\ud800"}')]), Reply(text=["ok"])]
    async with talking(steps, door=door) as talk:
        assert await talk.say("c\udfffd", instructions="e\ud800f") is StopReason.END_TURN
        assert [text for _, text in talk.told()] == ["e?f", "c?d", "g?h", "look", "a?b"]
        assert talk.engine.open("s", talk.session.snapshot()).snapshot() == talk.session.snapshot()


@pytest.mark.parametrize(("model", "thinks"), [(RESPONSES, True), ("openai-chat:o4-mini", True), (CHAT, False)])
async def test_a_model_that_thinks_can_be_told_how_hard(model: str, thinks: bool) -> None:
    async with talking([Reply(text=["ok"])], model=model, loaded=False) as talk:
        assert talk.engine.efforts == ()
        await talk.say("x", effort=Effort.HIGH)
        body = talk.stub.requests[0].body
        assert body.get("reasoning_effort") == "high" or body["reasoning"]["effort"] == "high"
        assert bool(talk.engine.efforts) is thinks


async def test_nothing_is_asked_to_be_kept_where_a_provider_would_keep_it() -> None:
    async with talking([Reply(text=["ok"])], model=RESPONSES) as talk:
        await talk.say("x")
        assert talk.stub.requests[0].body["store"] is False
        assert "previous_response_id" not in talk.stub.requests[0].body


@pytest.mark.parametrize(("model", "kinds", "named"), [(RESPONSES, ["reasoning"], True), ("openai:unknown", [], False)])
async def test_thoughts_go_back_sealed_and_without_them_no_item_has_a_name_by_which_they_would_be_missed(
    model: str, kinds: list[str], named: bool
) -> None:
    steps = [Reply(thoughts=["hm"], text=["So"], calls=[Call("look")]), Reply(text=["ok"])]
    async with talking(steps, model=model, door=FakeToolDoor(catalog_of("look"))) as talk:
        await talk.say("x")
        answer = talk.messages()[1:-1]
    assert [item["type"] for item in answer] == [*kinds, "message", "function_call"]
    assert all(("id" in item) is named for item in answer)
    assert [item["encrypted_content"] for item in answer if item["type"] == "reasoning"] == ["SEALED_0"] * named


async def test_the_doctor_asks_through_the_engine_that_is_set() -> None:
    with StubOpenAI([Reply(text=["ready"]), Failure(401)]) as stub:
        for ok in (True, False):
            trial = await try_model(CHAT, lambda _: ModelSettings(stub.base_url, KEY), choice="openai-agents")
            assert trial.ok is ok
            assert "Agents" in stub.requests[-1].headers["user-agent"]
        assert trial.kind == "auth"
