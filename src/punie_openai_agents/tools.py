"""The tool desk in the SDK's form: tools with the very schemas of the session; to invoke one is to call the desk."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import anyio
from agents import FunctionTool
from agents.tool import Tool
from agents.tool_context import ToolContext
from attrs import define, field, frozen

from punie.api import (
    Image,
    ToolCatalog,
    ToolDescriptor,
    ToolDoor,
    ToolResult,
    called,
    encodable,
    has_failed,
    picture,
    read_arguments,
    result_text,
    thaw_object,
)
from punie_openai_agents.history import Item, failed_text, result_item, shown, text_part, user_item


@frozen
class WantedCall:
    """A call as the model wrote it; `id` is unique in its answer."""

    id: str
    name: str
    written: str


@define
class Offered:
    """The tools of a turn in the SDK's form, made once a catalogue; lives as long as the turn."""

    _catalog: ToolCatalog | None = field(default=None, init=False)
    _tools: dict[str, FunctionTool] = field(factory=dict[str, FunctionTool], init=False)

    def take(self, catalog: ToolCatalog) -> list[Tool]:
        """The tools to send with the next request, in offered order."""
        if catalog is not self._catalog:
            self._tools = {tool.name: _tool(tool) for tool in catalog}
            self._catalog = catalog
        return list(self._tools.values())

    @property
    def sent(self) -> dict[str, bytes]:
        """The definitions that go with a request, by name."""
        sent = ((name, [tool.description, tool.params_json_schema]) for name, tool in self._tools.items())
        return {name: json.dumps(definition).encode() for name, definition in sent}

    def named(self, name: str) -> FunctionTool:
        """The tool of that name; one that was not offered as well: the desk refuses it, and shows that it did."""
        return self._tools.get(name) or FunctionTool(name, "", {}, _through_the_desk, strict_json_schema=False)


@define
class Calls:
    """The calls of one answer, at once; `results` are those that are there, by id, also where it was broken off."""

    door: ToolDoor
    offered: Offered
    results: dict[str, ToolResult] = field(factory=dict[str, ToolResult], init=False)

    async def run(self, wanted: Iterable[WantedCall]) -> None:
        """Run them all; comes back once each has its result."""
        async with anyio.create_task_group() as tasks:
            for call in wanted:
                tasks.start_soon(self._one, call)

    async def _one(self, call: WantedCall) -> None:
        tool = self.offered.named(call.name)
        context = ToolContext(self.door, tool_name=call.name, tool_call_id=call.id, tool_arguments=call.written)
        try:
            self.results[call.id] = await tool.on_invoke_tool(context, call.written)
        except anyio.get_cancelled_exc_class():
            left = self.door.cut_short(call.id)
            if left is not None:
                self.results[call.id] = left
            raise

    def items(self, wanted: Iterable[WantedCall]) -> list[Item]:
        """The results that are there as the model gets them, in the order of the calls; pictures come after them."""
        there = [(call, self.results[call.id]) for call in wanted if call.id in self.results]
        told = [result_item(call.id, _told(result)) for call, result in there]
        for call, result in there:
            pictures = [shown(p) for block in result.content if isinstance(block, Image) and (p := picture(block))]
            if pictures:
                told.append(user_item([text_part(f"[From the result of {call.name}, call {call.id}:]"), *pictures]))
        return told


async def _through_the_desk(context: ToolContext[Any], written: str) -> ToolResult:
    """Have the desk run a call. Its result is data: a failure reaches the model as text and ends nothing."""
    door: ToolDoor = context.context
    arguments: object = read_arguments(written) if written.strip() else dict[str, object]()
    return await door.call(called(context.tool_call_id, context.tool_name, arguments))


def _tool(tool: ToolDescriptor) -> FunctionTool:
    # Strict schemas would be another schema than the author's, and the desk checks arguments itself.
    return FunctionTool(
        name=tool.name,
        description=encodable(tool.description),
        params_json_schema=thaw_object(tool.parameters),
        on_invoke_tool=_through_the_desk,
        strict_json_schema=False,
    )


def _told(result: ToolResult) -> str:
    text = result_text(result)
    return failed_text(text) if has_failed(result.outcome) else text
