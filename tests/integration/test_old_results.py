"""In a long turn, old large results give way to a line that says how to get them again; seldom, and many at once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import pytest

from punie.adapters.library.upkeep import PUT_AWAY
from punie.application.desk.prefix import PrefixWatch
from punie.domain.model.compaction import ANSWERS_SEEN
from punie.domain.session.events import CompactionChanged, RequestBegun
from punie.domain.session.turn import StopReason, TurnLimits
from punie.domain.tools.tool import ToolCall, ToolResult
from tests.fakes.engine_side import FakeToolDoor, catalog_of
from tests.integration.engine_bench import Place, Talk, everywhere, talking
from tests.stub_openai import Call, Reply

pytestmark = pytest.mark.anyio

REQUESTS = 50
SIZE = 8_000
KEPT = "[the whole of it is in /tmp/punie-1/call_7.txt until the session ends; read_file reads it]"


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def reading() -> FakeToolDoor:
    """A door with one tool, whose results are long and all different; that of the eighth call is kept in a file."""

    def answer(call: ToolCall) -> ToolResult:
        number = cast("Mapping[str, int]", call.arguments)["number"]
        return ToolResult.success(f"result {number}: " + "x" * SIZE + (f"\n{KEPT}" if number == 7 else ""))

    return FakeToolDoor(catalog_of("look"), {"look": answer})


def results(talk: Talk, request: int) -> list[str]:
    return [text for role, text in talk.told(request) if role == "result"]


def common(before: list[Any], after: list[Any]) -> bool:
    """Whether a request begins with all that the one before it had."""
    return after[: len(before)] == before


@everywhere
async def test_old_results_are_put_away_seldom_and_stay_away(place: Place) -> None:
    steps = [Reply(calls=[Call("look", {"number": number})]) for number in range(REQUESTS)]
    async with talking(place, [*steps, Reply(text=["done"]), Reply(text=["again"])], door=reading()) as talk:
        limits = TurnLimits(max_requests=REQUESTS + 1)
        assert await talk.say("read everything", limits=limits) is StopReason.END_TURN
        assert not [event for event in talk.sink.events if isinstance(event, CompactionChanged)], (
            "nothing is said of it"
        )
        requests = [talk.messages(number) for number in range(REQUESTS + 1)]
        breaks = [n for n in range(1, REQUESTS + 1) if not common(requests[n - 1], requests[n])]
        assert 1 <= len(breaks) <= 4
        watch = PrefixWatch()
        seen = [watch.broken(event, "m") for event in talk.sink.events if isinstance(event, RequestBegun)]
        assert [number for number, broke in enumerate(seen) if broke] == breaks, "the digests say what the wire says"
        assert {(one.what, one.by) for broke in seen for one in broke} == {("message", PUT_AWAY)}
        for number in range(REQUESTS + 1):
            found = results(talk, number)
            assert len(found) == number, "every call has its result"
            assert all(len(text) > SIZE for text in found[-ANSWERS_SEEN:]), "the model is at work with the last ones"
        whole = sum(n * SIZE for n in range(REQUESTS + 1))
        sent = sum(len(text) for n in range(REQUESTS + 1) for text in results(talk, n))
        assert sent < whole / 2
        last = results(talk, -1)
        assert last[0].endswith("If it is still needed, call look again with the same arguments.]")
        assert last[7].endswith("If it is still needed, read_file reads /tmp/punie-1/call_7.txt.]")
        await talk.say("and then?", limits=limits)
        assert results(talk, -1)[: len(last) - 1] == last[:-1], "they stay away in the next turn"
        assert sum(len(text) < 300 for text in results(talk, -1)) >= sum(len(text) < 300 for text in last) > 20


@everywhere
async def test_a_short_conversation_is_left_as_it_is(place: Place) -> None:
    steps = [Reply(calls=[Call("look", {"number": number})]) for number in range(ANSWERS_SEEN)]
    async with talking(place, [*steps, Reply(text=["done"])], door=reading()) as talk:
        await talk.say("read some", limits=TurnLimits(max_requests=20))
        assert all(len(text) > SIZE for text in results(talk, -1))
