"""A tool that somebody else serves: the IDE's catalogue today, MCP servers later (S0-35, S0-59)."""

from __future__ import annotations

import logging

from attrs import field, frozen

from punie.application.tools.session_tool import CallContext, PreparedCall, SessionTool, text_argument
from punie.application.tools.wording import COMMAND_ARGUMENTS, command_of, denial_of, paths_of, title_of
from punie.domain.permission.policy import COMMAND_TOOL
from punie.domain.tools.arguments import COMMAND, takes_command
from punie.domain.tools.discovery import BUILT_IN_TOOLS
from punie.domain.tools.tool import ToolCall, ToolDescriptor, ToolResult
from punie.domain.values.display import one_line
from punie.domain.values.json_value import EMPTY_OBJECT, JsonObject, freeze_object
from punie.domain.values.terminal import Command
from punie.ports.tools import CallProgress, ToolExecutor


@frozen
class BridgedTool(SessionTool):
    """Hands a call on, and leaves a line in the log each time; bound to one session.

    `sent_along` are arguments that each call carries that does not give them itself.
    """

    tool: ToolDescriptor
    executor: ToolExecutor
    session_id: str
    log: logging.Logger
    sent_along: JsonObject = field(default=EMPTY_OBJECT, converter=freeze_object)

    @property
    def descriptor(self) -> ToolDescriptor:
        return self.tool

    def title(self, arguments: JsonObject) -> str:
        title = title_of(self.tool.name, arguments) or one_line(self.tool.title or self.tool.name)
        if not takes_command(self.tool):
            return title
        return one_line(f"{title}: {text_argument(arguments, COMMAND)}", limit=400)

    def denial(self, arguments: JsonObject) -> str:
        return denial_of(self.tool.name, arguments)

    def paths(self, arguments: JsonObject) -> tuple[str, ...]:
        # Only a tool named like one of ours is known to mean a path by `path`.
        return paths_of(self.tool.name, arguments) if self.tool.name in BUILT_IN_TOOLS else ()

    def command(self, arguments: JsonObject, context: CallContext) -> Command | None:
        # Only of a tool named like ours is it known what the words mean, and a word that we do not know may change it.
        if self.tool.name != COMMAND_TOOL or not COMMAND_ARGUMENTS.issuperset(arguments):
            return None
        return command_of(arguments, context)

    def sent(self, arguments: JsonObject) -> JsonObject:
        missing = {name: value for name, value in self.sent_along.items() if name not in arguments}
        return freeze_object({**arguments, **missing}) if missing else arguments

    async def prepare(self, arguments: JsonObject, context: CallContext) -> PreparedCall:
        call = ToolCall(context.call_id, self.tool.name, self.sent(arguments))

        async def effect(progress: CallProgress) -> ToolResult:
            self.log.info("session %s: calling %s of the %s", self.session_id, self.tool.name, self.tool.source.value)
            return await self.executor.execute(call, progress)

        return PreparedCall(effect)
