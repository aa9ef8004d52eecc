"""The client that the suite starts for each scenario: our adapter, told what the scenario wants done.

The last argument is the server's address; `MCP_CONFORMANCE_SCENARIO` names the scenario, and `MCP_CONFORMANCE_CONTEXT`
may say which calls to make. Exit code 0 where our adapter got through.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping
from typing import Any

import anyio

from punie.adapters.local.machine import LocalClock
from punie.adapters.mcp.servers import McpServers
from punie.adapters.schema.argument_validator import JsonSchemaRsValidator
from punie.domain.servers.server import HttpTransport, ServerConfig, ToolInfo
from punie.domain.session.elicitation import ElicitationAction, ElicitationAnswer
from punie.domain.values.json_value import JsonObject, freeze_object, thaw_object
from tests.fakes.elicitor import FakeElicitor
from tests.fakes.progress import FakeProgress

FOCAL, ECHO = "json_schema_2020_12_tool", "json_schema_echo"
LISTED_ONLY = frozenset({"initialize", "json-schema-ref-no-deref"})
"""Scenarios that look at what comes before a call."""

_MADE_UP = {"string": "x", "number": 2.5, "integer": 1, "boolean": True, "array": [], "object": {}}


async def run(address: str, scenario: str, context: Mapping[str, Any]) -> bool:
    """List the tools and call what the scenario wants called; whether all of it worked."""
    person = FakeElicitor([ElicitationAnswer(ElicitationAction.ACCEPT)] * 20)  # sends every form as it found it
    async with McpServers(LocalClock(), JsonSchemaRsValidator(), person) as servers:
        server = servers.open(ServerConfig("suite", HttpTransport(address)))
        listing = await server.list_tools()
        worked = True
        for name, arguments in _calls(scenario, context, {tool.name: tool for tool in listing.tools}):
            result = await server.call(name, arguments, FakeProgress())
            print(f"{name}: {result.outcome.value}: {result.text[:300]}", file=sys.stderr)
            worked = worked and result.succeeded
        return worked


def _calls(
    scenario: str, context: Mapping[str, Any], tools: Mapping[str, ToolInfo]
) -> Iterator[tuple[str, JsonObject]]:
    if scenario in LISTED_ONLY:
        return
    if wanted := context.get("toolCalls"):
        for call in wanted:
            yield call["name"], freeze_object(call.get("arguments") or {})
        return
    for tool in tools.values():
        if tool.name == ECHO:
            yield tool.name, freeze_object({"schema": thaw_object(tools[FOCAL].input_schema)})
        else:
            yield tool.name, freeze_object(_made_up(thaw_object(tool.input_schema)))


def _made_up(schema: dict[str, Any]) -> dict[str, Any]:
    properties: dict[str, Any] = schema.get("properties") or {}
    return {name: _value(properties.get(name) or {}) for name in schema.get("required") or properties}


def _value(schema: dict[str, Any]) -> Any:
    return schema["enum"][0] if schema.get("enum") else _MADE_UP.get(str(schema.get("type")), "x")


def main() -> int:
    scenario = os.environ.get("MCP_CONFORMANCE_SCENARIO", "")
    context = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}")
    return 0 if anyio.run(run, sys.argv[-1], scenario, context) else 1


if __name__ == "__main__":
    raise SystemExit(main())
