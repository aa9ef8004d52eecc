"""MCP servers as a session's tools: listed without starting any, safe to show, called through the registry (S2-70)."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from attrs import evolve

from punie.adapters.schema.argument_validator import JsonSchemaRsValidator
from punie.application.servers.registry import ServerRegistry
from punie.application.servers.session_servers import DESCRIPTION_LIMIT, ServerCalls, SessionServers
from punie.application.tools.session_tool import SessionTool
from punie.domain.errors import ToolFailedError
from punie.domain.servers.server import ServerOrigin
from punie.domain.tools.tool import ToolCall, ToolResult, ToolSource
from punie.domain.values.json_value import JsonObject, freeze_object
from punie.ports.tools import CallProgress
from tests.fakes.progress import FakeProgress
from tests.fakes.servers import a_tool
from tests.unit.application.servers.test_server_registry import Bench, refused

pytestmark = pytest.mark.anyio

LOG = logging.getLogger("test.servers")


@asynccontextmanager
async def of(bench: Bench) -> AsyncIterator[tuple[SessionServers, ServerRegistry, list[tuple[str, str]]]]:
    """A session's servers, their registry, and what a person is warned of."""
    async with bench.registry() as registry:
        warned: list[tuple[str, str]] = []
        registry.around = evolve(registry.around, warn=lambda title, text: warned.append((title, text)))
        yield SessionServers("s", registry, JsonSchemaRsValidator(), LOG), registry, warned


def names(tools: tuple[SessionTool, ...]) -> list[str]:
    return [tool.descriptor.name for tool in tools]


async def test_listing_starts_no_server_and_freshening_asks_those_that_never_listed_any() -> None:
    bench = Bench()
    bench.add("alpha", "echo")
    async with of(bench) as (servers, _, warned):
        assert await servers.tools() == ()
        assert servers.unlisted() == ("alpha",)
        assert bench.asked() == {"alpha": 0}
        await servers.freshen(None)
        tools = await servers.tools()
        assert (names(tools), servers.unlisted(), warned) == (["alpha__echo"], (), [])
        (tool,) = tools
        assert tool.descriptor.source is ToolSource.MCP
        assert tool.descriptor.metadata == freeze_object({"server": "alpha", "name": "echo"})


async def test_a_tool_whose_schema_cannot_be_used_is_left_out_and_the_person_hears_of_it() -> None:
    bench = Bench()
    bench.add("alpha")
    bench.lists("alpha", a_tool("bad", input_schema=freeze_object({"type": "nonsense"})), "good")
    async with of(bench) as (servers, _, warned):
        await servers.freshen(None)
        assert names(await servers.tools()) == ["alpha__good"]
        ((title, text),) = warned
        assert title == "The tool alpha__bad cannot be used"
        assert text.startswith("Its schema: ")


async def test_servers_that_wait_for_a_person_or_are_wrong_are_named_once() -> None:
    bench = Bench()
    bench.add("alpha", "echo", origin=ServerOrigin.PROJECT)
    bench.add("beta", problem="its command is missing")
    bench.add("gamma", disabled=True)
    async with of(bench) as (servers, _, warned):
        for _ in range(2):
            assert await servers.tools() == ()
        assert [title for title, _ in warned] == [
            "The MCP server alpha is not used",
            "The MCP server beta is not used",
        ]
        assert "its command is missing" in warned[1][1]


async def test_what_a_stranger_says_of_its_tool_is_made_safe_and_cut() -> None:
    said: dict[str, Any] = {"description": "\x1b[31m" + "x" * 5_000, "title": "two\nlines"}
    bench = Bench()
    bench.add("alpha")
    bench.lists("alpha", a_tool("echo", **said))
    async with of(bench) as (servers, _, _warned):
        await servers.freshen(None)
        (tool,) = await servers.tools()
        assert len(tool.descriptor.description) == DESCRIPTION_LIMIT
        assert "\x1b" not in tool.descriptor.description
        assert tool.descriptor.title == "two lines"


async def test_what_is_sent_along_is_hidden_from_the_model_and_shown_to_the_person() -> None:
    takes = freeze_object({"type": "object", "properties": {"text": {}, "token": {}}, "required": ["text", "token"]})
    bench = Bench()
    bench.add("alpha", sent_along={"token": "t", "other": "o"})
    bench.lists("alpha", a_tool("echo", input_schema=takes), "plain")
    async with of(bench) as (servers, _, _warned):
        await servers.freshen(None)
        echo, plain = sorted(await servers.tools(), key=lambda tool: tool.descriptor.name)
        assert echo.descriptor.parameters["properties"] == freeze_object({"text": {}})
        assert echo.descriptor.metadata["sentAlong"] == freeze_object({"token": "t"})
        assert "sentAlong" not in plain.descriptor.metadata, "it takes none of it"


async def test_a_call_reaches_its_server_and_one_that_is_down_fails_in_words_for_the_model() -> None:
    async def echo(arguments: JsonObject, _progress: CallProgress) -> ToolResult:
        return ToolResult.success(str(arguments["text"]))

    bench = Bench()
    server = bench.add("alpha", "echo")
    server.answers = {"echo": echo}
    async with of(bench) as (_, registry, _warned):
        calls = ServerCalls(registry, a_tool("echo"))
        call = ToolCall("c", "alpha__echo", freeze_object({"text": "heard"}))
        assert (await calls.execute(call, FakeProgress())).text == "heard"
        assert server.calls == [("echo", freeze_object({"text": "heard"}))]
        server.down = "it fell over"
        error = await refused(ToolFailedError, lambda: calls.execute(call, FakeProgress()))
        assert "it fell over" in str(error)


async def test_the_lists_of_a_clients_servers_are_read_behind_the_sessions_answer() -> None:
    bench = Bench()
    bench.add("alpha", "echo", origin=ServerOrigin.CLIENT)
    async with of(bench) as (servers, registry, _):
        changes: list[str] = []
        servers.hear(lambda: changes.append("changed"))
        await registry.list_tools()
        assert (registry.has_clients, await servers.tools()) == (True, ())
        changes.clear()
        servers.start()
        servers.start()
        assert changes == ["changed"]
        assert names(await servers.tools()) == ["alpha__echo"]
