"""A tool that somebody else serves: the IDE's catalogue, an MCP server or a plug-in."""

from __future__ import annotations

import logging

from attrs import field, frozen

from punie.application.tools.own_tools import PLANNED, as_ours
from punie.application.tools.session_tool import CallContext, PreparedCall, SessionTool
from punie.domain.permission.grants import takes_command
from punie.domain.tools.arguments import text_argument
from punie.domain.tools.tool import ToolCall, ToolDescriptor, ToolResult
from punie.domain.values.display import one_line
from punie.domain.values.json_value import EMPTY_OBJECT, JsonObject, freeze_object
from punie.domain.values.terminal import Command
from punie.ports.tools import CallProgress, ToolExecutor


@frozen
class BridgedTool(SessionTool):
    """Hands a call on, and leaves a line in the log each time; bound to one session.

    A tool with the name of one of ours is titled and judged like ours. `sent_along` are arguments that each call
    carries that does not give them itself.
    """

    tool: ToolDescriptor = field(converter=as_ours)
    executor: ToolExecutor
    session_id: str
    log: logging.Logger
    sent_along: JsonObject = field(default=EMPTY_OBJECT, converter=freeze_object)

    @property
    def descriptor(self) -> ToolDescriptor:
        return self.tool

    def title(self, arguments: JsonObject) -> str:
        own = PLANNED.get(self.tool.name)
        title = ("" if own is None else own.titled(arguments)) or one_line(self.tool.title or self.tool.name)
        if not takes_command(self.tool):
            return title
        return one_line(f"{title}: {text_argument(arguments, 'command')}", limit=400)

    def denial(self, arguments: JsonObject) -> str:
        own = PLANNED.get(self.tool.name)
        return super().denial(arguments) if own is None else own.denied(arguments)

    def command(self, arguments: JsonObject, context: CallContext) -> Command | None:
        # A word whose meaning is not known may change the command.
        return super().command(arguments, context) if self.tool.roles.know(arguments) else None

    def sent(self, arguments: JsonObject) -> JsonObject:
        missing = {name: value for name, value in self.sent_along.items() if name not in arguments}
        return freeze_object({**arguments, **missing}) if missing else arguments

    async def prepare(self, arguments: JsonObject, context: CallContext) -> PreparedCall:
        call = ToolCall(context.call_id, self.tool.name, self.sent(arguments))

        async def effect(progress: CallProgress) -> ToolResult:
            self.log.info("session %s: calling %s of the %s", self.session_id, self.tool.name, self.tool.source.value)
            return await self.executor.execute(call, progress)

        return PreparedCall(effect)
