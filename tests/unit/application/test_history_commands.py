"""/compact, /clear and /model as a person types them: what becomes of the model's memory, and what is said of it."""

from __future__ import annotations

import anyio.lowlevel
import pytest
from attrs import define, field

from punie.application.turns.live_session import Answered, Invocation, SlashCommand
from punie.application.turns.own_commands import NOTHING_KEPT, OWN_COMMANDS
from punie.domain.errors import EngineError
from punie.domain.model.compaction import CompactionOrder
from punie.domain.model.provider import DIRECT, Effort
from punie.domain.session.events import ContextUsed, HistoryForgotten
from punie.domain.values.content import Prompt
from punie.ports.engine import EventSink, HistoryKeeper
from tests.unit.application.session_bench import PlayedEngine
from tests.unit.application.test_model_switch import Bench, bench, shelf

pytestmark = pytest.mark.anyio

__all__ = ["bench"]


@define(eq=False, slots=False)
class Remembering(PlayedEngine, HistoryKeeper):
    """An engine with a memory; `shorter` is whether there is something to summarise, or why that fails."""

    shorter: bool | EngineError = True
    orders: list[CompactionOrder] = field(factory=list)
    forgot: int = 0

    async def compact(self, order: CompactionOrder, *, events: EventSink) -> bool:
        del events
        await anyio.lowlevel.checkpoint()
        self.orders.append(order)
        if isinstance(self.shorter, EngineError):
            raise self.shorter
        return self.shorter

    def forget(self) -> None:
        self.forgot += 1


COMPACT, CLEAR, MODEL = OWN_COMMANDS[:3]


async def said(bench: Bench, command: SlashCommand, arguments: str = "") -> str:
    invocation = Invocation(arguments, Prompt.of_text("/x"), bench.session, bench.inner.client, "t")
    outcome = await command.run(invocation)
    assert isinstance(outcome, Answered)
    return outcome.text


async def test_a_summary_is_ordered_with_the_persons_wish_and_its_outcome_is_told(bench: Bench) -> None:
    bench.session.engine = engine = Remembering()
    assert (await said(bench, COMPACT, " the tests ")).startswith("From here on the model knows a summary")
    (order,) = engine.orders
    assert order == CompactionOrder("t-compaction", "the tests", bench.session.limits.compact_above_tokens)
    engine.shorter = False
    assert await said(bench, COMPACT) == "There is nothing to summarise yet."
    engine.shorter = EngineError("auth", "The key is wrong.")
    failed = await said(bench, COMPACT)
    assert failed.startswith("The conversation could not be summarised, so it is as it was.")
    assert "The key is wrong." in failed


async def test_a_model_forgets_and_the_client_is_told_that_its_context_is_empty(bench: Bench) -> None:
    bench.session.engine = engine = Remembering()
    assert (await said(bench, CLEAR)).startswith("The model has forgotten")
    assert engine.forgot == 1
    told = [event for event in bench.inner.client.notifications if isinstance(event, HistoryForgotten | ContextUsed)]
    assert told == [HistoryForgotten(), ContextUsed(0)]


async def test_an_engine_without_a_memory_says_so_and_no_model_is_offered_neither(bench: Bench) -> None:
    for command in (COMPACT, CLEAR):
        assert await said(bench, command) == NOTHING_KEPT
        assert command.offered(bench.session)
        bench.session.model = DIRECT
        assert not command.offered(bench.session)
        bench.session.model = "none-yet"


async def test_models_are_listed_and_one_goes_on_by_its_name_or_what_is_behind_the_provider(bench: Bench) -> None:
    made = shelf()
    made.kinds = {"x:a1": made.kinds["a1"], "y:a1": made.kinds["a2"], "y:b": made.kinds["b"]}
    made.thinking = {"y:b": tuple(Effort)}
    made.broken = ("z:broken",)
    bench.session.shelf = made
    listed = await said(bench, MODEL)
    assert listed.splitlines()[0].startswith("The model is `none-yet`.")
    assert "- `y:b`" in listed.splitlines()
    assert (await said(bench, MODEL, "b")).startswith("`y:b` answers from here on.")
    bench.session.effort = Effort.HIGH
    assert "(thinking: high)" in await said(bench, MODEL)
    ambiguous = await said(bench, MODEL, "a1")
    assert "offers no model named 'a1'" in ambiguous
    assert ambiguous.endswith("The model is still `y:b`.")
    broken = await said(bench, MODEL, "z:broken")
    assert broken.startswith("No key for z:broken.")
    assert bench.session.model == "y:b"
