"""The tool `call_tool`: calls a tool that the model is not offered in full, so that the offered tools never change."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from attrs import evolve, frozen

from punie.application.tools.built_in import STRING, PlainTool, schema
from punie.application.tools.session_tool import CallContext
from punie.domain.errors import ToolFailedError
from punie.domain.model.text import read_arguments
from punie.domain.tools.disclosure import CALL_TOOL
from punie.domain.tools.roles import Column, Role
from punie.domain.tools.tool import ToolCall, ToolDescriptor, ToolKind, ToolResult
from punie.domain.values.json_value import EMPTY_OBJECT, JsonObject, JsonValue


@frozen
class CallTool(PlainTool):
    """Stands for the call that it names: the desk makes that call instead, under the other tool's name alone.

    Registered together with `search_tools`. `run` is left with calls that name no other tool.
    """

    DESCRIPTOR = ToolDescriptor(
        CALL_TOOL,
        ToolKind.OTHER,
        "Call a tool that search_tools found.",
        schema({"name": STRING}, {"arguments": {"type": "object"}}),
        categories=("session",),
        roles={"name": Role.PLAIN, "arguments": Role.PLAIN},
        column=Column.READ,
    )

    @staticmethod
    def meant(call: ToolCall) -> ToolCall:
        """The call that such a call stands for; the same call where it names no other tool.

        Arguments that were written as a text of JSON, as some models do, are read.
        """
        given = call.arguments
        name = given.get("name") if isinstance(given, Mapping) else None
        if not isinstance(given, Mapping) or not isinstance(name, str) or name == CALL_TOOL:
            return call
        arguments = given.get("arguments", EMPTY_OBJECT)
        if isinstance(arguments, str):
            arguments = cast("JsonValue", read_arguments(arguments))
        return evolve(call, name=name, arguments=arguments)

    async def run(self, arguments: JsonObject, context: CallContext) -> ToolResult:
        raise ToolFailedError("name must be that of another tool: one that search_tools found, or one of the listing.")
