"""The tool `search_tools`: finds tools that are not loaded, and loads those that fit."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeAlias

from attrs import frozen

from punie.application.tools.built_in import STRING, PlainTool, optional, schema
from punie.application.tools.session_tool import CallContext
from punie.domain.tools.disclosure import SEARCH_TOOLS, line_of, server_of
from punie.domain.tools.roles import Column, Role
from punie.domain.tools.schema import text_argument, whole_argument
from punie.domain.tools.tool import ToolDescriptor, ToolKind, ToolResult
from punie.domain.values.display import one_line
from punie.domain.values.json_value import JsonObject

DEFAULT_HITS = 5
MOST_HITS = 20


@frozen
class FoundTools:
    """The result of a search: `loaded` are offered from the next model request on, `others` were found beside them.

    `servers` names the servers whose tools were searched, for a search that found nothing.
    """

    loaded: tuple[ToolDescriptor, ...] = ()
    others: tuple[ToolDescriptor, ...] = ()
    servers: str = ""


FindTools: TypeAlias = Callable[[str, int], FoundTools]
"""Searches for the words of the first argument; the second is how many hits there may be."""

Freshen: TypeAlias = Callable[[], Awaitable[None]]
"""Asks servers that have not listed their tools yet, in bounded time."""


@frozen
class SearchTools(PlainTool):
    """Registered only while tools of the session are not loaded; a call has no effect outside of the session."""

    find: FindTools
    freshen: Freshen
    DESCRIPTOR = ToolDescriptor(
        SEARCH_TOOLS,
        ToolKind.SEARCH,
        "Load more tools, by what they do or by name; then call them.",
        # The schema goes with every request, so it is short; the bounds are kept below.
        schema({"query": STRING}, {"limit": optional("integer")}),
        categories=("session",),
        roles={"query": Role.QUERY, "limit": Role.PLAIN},
        column=Column.READ,
    )

    def title(self, arguments: JsonObject) -> str:
        return f"Find tools: {one_line(text_argument(arguments, 'query'), 80)}"

    async def run(self, arguments: JsonObject, context: CallContext) -> ToolResult:
        query = text_argument(arguments, "query")
        await self.freshen()
        limit = max(1, min(whole_argument(arguments, "limit") or DEFAULT_HITS, MOST_HITS))
        return _told(query, self.find(query, limit))


def _told(query: str, found: FoundTools) -> ToolResult:
    hits = [
        {"name": tool.name, "server": server_of(tool), "description": line_of(tool)}
        for tool in (*found.loaded, *found.others)
    ]
    structured = {"loaded": [tool.name for tool in found.loaded], "hits": hits}
    if not hits:
        return ToolResult.success(
            f"No tool fits {one_line(query)!r}. There are tools on: {found.servers or 'no server'}. Use other words.",
            structured=structured,
        )
    said = ["Loaded:", *map(_line, found.loaded)]
    if found.others:
        said += ["Not loaded (search the name to load):", *map(_line, found.others)]
    return ToolResult.success("\n".join(said), structured=structured)


def _line(tool: ToolDescriptor) -> str:
    return f"{tool.name} ({server_of(tool)}): {line_of(tool)}".removesuffix(": ")
