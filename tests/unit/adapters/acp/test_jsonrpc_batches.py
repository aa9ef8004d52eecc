"""Batches, where the router takes them: one array answers what wants an answer, and nothing waits for it."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from punie.mechanics.jsonrpc.batches import MAX_BATCH
from punie.mechanics.jsonrpc.connection import Connection
from punie.mechanics.jsonrpc.errors import INVALID_REQUEST, METHOD_NOT_FOUND, PARSE_ERROR, REQUEST_CANCELLED
from tests.fakes.line_transport import FakeLineTransport
from tests.fakes.router import FakeRouter
from tests.unit.adapters.acp.jsonrpc_bench import answer, call, echo, note, serving

pytestmark = pytest.mark.anyio


class Batching(FakeRouter):
    """A router whose peer may send batches."""

    @property
    def takes_batches(self) -> bool:
        return True


@asynccontextmanager
async def taking(**handlers: Any) -> AsyncIterator[tuple[Connection, FakeLineTransport, Batching]]:
    router = Batching(echo=echo, **handlers)
    async with serving(router) as (connection, wire):
        yield connection, wire, router


def batch(*entries: Any) -> bytes:
    return json.dumps(entries).encode()


def told(line: bytes) -> list[tuple[Any, Any]]:
    """The answers of an array as ids with results or the codes of errors."""
    answers = json.loads(line)
    assert isinstance(answers, list)
    return [(one["id"], one["error"]["code"] if "error" in one else one["result"]) for one in answers]


async def test_one_array_answers_what_wants_an_answer_whatever_stands_beside_it():
    async with taking() as (_, wire, router):
        stray = answer(17, {})
        wire.feed(batch(call("a", n=1), note("seen", n=2), 17, [call("deep")], call("b", "none"), stray, call("a")))
        (line,) = await wire.lines_until(1)
        assert sorted(told(line), key=str) == sorted(
            [
                ("a", {"n": 1}), (None, INVALID_REQUEST), (None, INVALID_REQUEST), ("b", METHOD_NOT_FOUND),
                ("a", INVALID_REQUEST),
            ],
            key=str,
        )  # fmt: skip
        assert router.noted == [("seen", {"n": 2})]


async def test_a_batch_of_notifications_and_answers_has_no_answer():
    async with taking() as (connection, wire, _):
        results: list[bytes] = []

        async def ask() -> None:
            results.append(bytes(await connection.request("ask", {})))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask)
            tasks.start_soon(ask)
            first, second = await wire.until(2)
            wire.feed(batch(answer(second["id"], {"a": "\ud800"}), note("seen"), answer(first["id"], 1)), call("on"))
        assert sorted(results) == [b"1", b'{"a": "\\ufffd"}']
        assert (await wire.until(3))[2] == answer("on", {})


MANY = (
    b"[" + b",".join(b'{"jsonrpc":"2.0","id":%d,"method":"echo","params":{}}' % each for each in range(100_000)) + b"]"
)


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (b"[]", INVALID_REQUEST),
        (b"[" + b"1," * MAX_BATCH + b"1]", INVALID_REQUEST),
        (MANY, INVALID_REQUEST),
        (b'[{"jsonrpc":"2.0","id":1,"method":', PARSE_ERROR),
        (b'["\xff"]', PARSE_ERROR),
        (b"[" * 100_000 + b"]" * 100_000, PARSE_ERROR),
        (b"17", INVALID_REQUEST),
    ],
    ids=["empty", "one too many", "far too many", "torn", "no UTF-8", "a deep nest", "no array"],
)
async def test_a_line_that_is_no_batch_of_bounded_length_is_refused_as_one(line: bytes, code: int):
    async with taking() as (_, wire, router):
        wire.feed(line, call("on"))
        refused, on = await wire.until(2)
        assert (refused["id"], refused["error"]["code"], on) == (None, code, answer("on", {}))
        assert len(router.begun) == 1


async def test_a_full_batch_is_answered_whole():
    async with taking() as (_, wire, _):
        wire.feed(batch(*range(MAX_BATCH)))
        (line,) = await wire.lines_until(1)
        assert told(line) == [(None, INVALID_REQUEST)] * MAX_BATCH


async def test_a_request_that_waits_holds_its_batch_and_nothing_else():
    go_on = anyio.Event()

    async def wait(_: Any) -> object:
        await go_on.wait()
        return "late"

    async with taking(wait=wait) as (_, wire, _):
        wire.feed(batch(call(1), call(2, "wait")), call(3), batch(call(4)))
        lines = await wire.lines_until(2)
        alone, together = sorted(map(json.loads, lines), key=lambda told: isinstance(told, list))
        assert (alone, together) == (answer(3, {}), [answer(4, {})])
        go_on.set()
        assert told((await wire.lines_until(3))[2]) == [(1, {}), (2, "late")]


async def never(_: Any) -> object:
    return await anyio.sleep_forever()


async def test_an_entry_is_cancelled_by_its_own_batch_or_by_a_later_line():
    async with taking(never=never) as (_, wire, _):
        wire.feed(batch(call(1, "never"), call(2, "never"), note("$/cancel_request", requestId=1)))
        wire.feed(note("$/cancel_request", requestId=2))
        (line,) = await wire.lines_until(1)
        assert sorted(told(line)) == [(1, REQUEST_CANCELLED), (2, REQUEST_CANCELLED)]


async def test_a_batch_is_answered_when_the_peer_hangs_up():
    async with taking(never=never) as (_, wire, _):
        wire.feed(batch(call(1, "never"), call(2)))
    (line,) = wire.lines
    assert sorted(told(line)) == [(1, REQUEST_CANCELLED), (2, {})]


async def test_answers_above_a_mebibyte_do_not_wait_for_a_request_without_an_end():
    async def long(_: Any) -> object:
        return "x" * 300_000

    async with taking(never=never, long=long) as (_, wire, _):
        wire.feed(batch(call(0, "never"), *[call(number, "long") for number in range(1, 6)]))
        (line,) = await wire.lines_until(1)
        first = [number for number, _ in told(line)]
        assert len(first) == 4
        wire.feed(note("$/cancel_request", requestId=0))
        rest = [number for number, _ in told((await wire.lines_until(2))[1])]
        assert sorted(first + rest) == [0, 1, 2, 3, 4, 5]
