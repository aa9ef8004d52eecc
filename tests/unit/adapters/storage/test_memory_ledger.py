"""The ledger in memory is bounded."""

from __future__ import annotations

import pytest

from punie.adapters.storage.usage import MemoryUsageLedger
from tests.fakes.records import a_call, a_turn

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("S0-50")]


async def test_beyond_its_bound_the_oldest_are_forgotten_first():
    ledger = MemoryUsageLedger(kept=3)
    for number in range(5):
        ledger.record_call(a_call(number))
        ledger.record_turn(a_turn(number))
    assert [call.correlation_id for call in await ledger.calls()] == ["call_2", "call_3", "call_4"]
    assert [turn.turn_id for turn in await ledger.turns()] == ["turn_2", "turn_3", "turn_4"]
