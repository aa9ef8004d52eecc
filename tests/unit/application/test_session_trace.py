"""A log of any length as a trace of bounded size (issue 7)."""

from __future__ import annotations

import tracemalloc

import anyio
import pytest

from punie.commands.trace.run import ENTRIES_AT_ONCE, TURNS_IN_FULL, TURNS_IN_OUTLINE, SessionTrace
from punie.domain.session.log import SessionBegun, SessionSummary
from punie.domain.session.timeline import TurnTimeline
from punie.domain.tools.tool import ToolOutcome
from tests.entries_only import EntriesOnly
from tests.fakes.sessions import entries
from tests.fakes.traced_session import a_long_session, one_of_everything

pytestmark = pytest.mark.anyio

SUMMARY = SessionSummary("sess_1", "/project")


async def test_a_short_session_is_told_whole() -> None:
    trace = SessionTrace(EntriesOnly(one_of_everything()), SUMMARY)
    outline = await trace.outline()
    told = [turn async for turn in trace.turns(outline)]
    assert [turn.number for turn in told] == [turn.number for turn in outline.turns] == [1, 2, 3]
    assert (outline.full_from, outline.left_out) == (1, 0)
    totals = outline.totals
    assert (totals.turns, totals.failed, totals.requests, totals.questions) == (3, 1, 7, 3)
    assert (totals.usage.input_tokens, totals.usage.cost_usd) == (15_360, 0.0065)
    assert totals.calls.total() == 5
    assert all(turn.steps for turn in told)


async def test_a_session_in_which_nothing_was_said_has_no_turns() -> None:
    trace = SessionTrace(EntriesOnly(entries(SessionBegun("/p"))), SUMMARY)
    outline = await trace.outline()
    assert outline.turns == ()
    assert [turn async for turn in trace.turns(outline)] == []


async def test_of_many_turns_the_latest_are_told_and_the_ones_before_are_outlined_or_counted() -> None:
    store = EntriesOnly(a_long_session(turns=1_000, calls=1))
    trace = SessionTrace(store, SUMMARY)
    outline = await trace.outline()
    told = [turn async for turn in trace.turns(outline)]
    assert outline.totals.turns == 1_000
    assert outline.totals.calls.total() == 1_000
    assert (len(outline.turns), outline.left_out) == (TURNS_IN_OUTLINE, 1_000 - TURNS_IN_OUTLINE)
    assert [turn.number for turn in told] == list(range(1_001 - TURNS_IN_FULL, 1_001))
    assert store.most == ENTRIES_AT_ONCE


async def test_turns_are_told_as_far_as_there_is_room_and_the_last_one_whatever_it_takes() -> None:
    store = EntriesOnly(a_long_session(turns=10, calls=10))
    outline = await SessionTrace(store, SUMMARY, page_weight=40_000).outline()
    assert 5 < outline.full_from < 10
    assert (await SessionTrace(store, SUMMARY, page_weight=1).outline()).full_from == 10


async def test_what_is_added_between_the_two_readings_is_not_told() -> None:
    log = one_of_everything()
    store = EntriesOnly(log[:-10])
    trace = SessionTrace(store, SUMMARY)
    outline = await trace.outline()
    store.entries = tuple(log)
    last = [turn async for turn in trace.turns(outline)][-1]
    assert last.ended == outline.turns[-1].ended


def test_what_is_kept_of_a_very_long_turn_does_not_grow_with_it() -> None:
    """Measured: a hundred thousand entries take two seconds and no more memory than these."""

    async def told() -> TurnTimeline:
        outline = await trace.outline()
        (turn,) = [turn async for turn in trace.turns(outline)]
        return turn

    log = list(a_long_session(turns=1, calls=2_500))
    trace = SessionTrace(EntriesOnly(log), SUMMARY)
    tracemalloc.start()
    try:
        turn = anyio.run(told)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (len(turn.steps), turn.left_out) == (1_500, 1_000)
    assert turn.calls == {ToolOutcome.SUCCEEDED: 2_500}
    assert peak < 8_000_000
