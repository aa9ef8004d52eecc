"""What a server says that answers nobody: how much is borne, and what a later word makes old."""

from __future__ import annotations

from typing import Any

import mcp_types as types
import pytest
from mcp.shared.message import SessionMessage

from punie.adapters.mcp import stdio as module
from punie.adapters.mcp.stdio import AT_ONCE, PER_S, Noise, newest

pytestmark = pytest.mark.anyio


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    monkeypatch.setattr(module.anyio, "sleep", sleep)
    return slept


async def test_a_lively_server_is_never_held_up(pauses: list[float]) -> None:
    noise = Noise()
    for _ in range(int(AT_ONCE) // 2):
        noise.heard(100, asks=False)
    await noise.pause()
    assert pauses == []


async def test_one_that_goes_on_and_on_waits_as_long_as_it_takes_to_bear_it(pauses: list[float]) -> None:
    noise = Noise()
    for _ in range(int(AT_ONCE + PER_S)):
        noise.heard(0, asks=False)
    await noise.pause()
    assert pauses == [pytest.approx(1, abs=0.5)]


@pytest.mark.parametrize(("size_bytes", "asks"), [(64 * 1024, False), (0, True)])
async def test_a_long_line_and_a_request_weigh_more(pauses: list[float], size_bytes: int, asks: bool) -> None:
    noise = Noise()
    for _ in range(int(AT_ONCE) // 10):
        noise.heard(size_bytes, asks=asks)
    await noise.pause()
    assert len(pauses) == 1


async def test_no_pause_is_for_ever(pauses: list[float]) -> None:
    noise = Noise()
    noise.heard(10**12, asks=False)
    await noise.pause()
    assert pauses == [5]


def notification(method: str, **params: Any) -> SessionMessage:
    return SessionMessage(types.JSONRPCNotification(jsonrpc="2.0", method=method, params=params))


def progress(token: object, done: int) -> SessionMessage:
    return notification("notifications/progress", progressToken=token, progress=done)


def test_of_many_steps_that_come_together_the_last_of_each_call_stands_in_its_place() -> None:
    answer = SessionMessage(types.JSONRPCResponse(jsonrpc="2.0", id=1, result={}))
    news = [notification("notifications/tools/list_changed") for _ in range(50)]
    steps = [progress(token, done) for done in range(50) for token in (1, "b")]
    odd = [progress([], 1), progress(None, 2)]
    assert newest([*steps, *odd, *news, answer]) == [progress(1, 49), progress("b", 49), *odd, news[-1], answer]
    assert newest([answer, *steps])[0] == answer


def test_a_few_are_all_handed_on() -> None:
    steps = [progress(1, done) for done in range(16)]
    assert newest(steps) == steps
