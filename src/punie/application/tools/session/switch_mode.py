"""The tool `switch_mode`: the agent's request to leave the read-only mode once its plan is ready."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeAlias

from attrs import frozen

from punie.application.tools.built_in import STRING, BuiltInTool, schema
from punie.application.tools.session_tool import CallContext, PreparedCall
from punie.domain.errors import ModeNotAllowedError
from punie.domain.permission.rules import Mode
from punie.domain.tools.roles import Column, Role
from punie.domain.tools.schema import text_argument
from punie.domain.tools.tool import ToolDescriptor, ToolKind, ToolResult
from punie.domain.values.json_value import JsonObject
from punie.ports.tools import CallProgress

SWITCH_MODE = "switch_mode"

OFFERED = (Mode.ASK, Mode.ACCEPT_EDITS)
"""Modes that a model may ask for: never the one in which a person is asked the least."""

Switch: TypeAlias = Callable[[Mode], Awaitable[None]]


@frozen
class SwitchMode(BuiltInTool):
    """Switches the mode after a plan; offered in the read-only mode alone, and asks a person every time."""

    switch: Switch
    TALKS = True
    DESCRIPTOR = ToolDescriptor(
        SWITCH_MODE,
        ToolKind.SWITCH_MODE,
        "Ask the user to leave read-only mode and carry out your plan.",
        schema({"plan": STRING, "mode": {"type": "string", "enum": [mode.value for mode in OFFERED]}}),
        categories=("session",),
        roles={"plan": Role.PLAIN, "mode": Role.PLAIN},
        column=Column.READ,
    )

    def title(self, arguments: JsonObject) -> str:
        return f"Leave read-only for {text_argument(arguments, 'mode', Mode.ASK.value)}"

    async def prepare(self, arguments: JsonObject, context: CallContext) -> PreparedCall:
        mode = Mode(text_argument(arguments, "mode"))

        async def effect(_progress: CallProgress) -> ToolResult:
            try:
                await self.switch(mode)
            except ModeNotAllowedError as error:
                return ToolResult.denied(str(error))
            return ToolResult.success(
                f"The session is in mode {mode.value} now. Go on with the plan.", structured={"mode": mode.value}
            )

        return PreparedCall(effect, about=text_argument(arguments, "plan"))
