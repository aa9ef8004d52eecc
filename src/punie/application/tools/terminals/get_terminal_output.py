"""The tool `get_terminal_output`, for terminals of the client or of this machine."""

from __future__ import annotations

from punie.application.tools.session_tool import CallContext
from punie.application.tools.terminals.terminal_tool import TerminalTool, printed, terminal_tool
from punie.domain.tools.metadata import Permission
from punie.domain.tools.tool import ToolResult


class GetTerminalOutput(TerminalTool):
    """Gives the output of a terminal so far."""

    TITLE = "Reading the output of {terminal_id}"
    DESCRIPTOR = terminal_tool("get_terminal_output", "Get what a background command printed so far.", Permission.READ)

    async def act(self, terminal_id: str, context: CallContext) -> ToolResult:
        box = self.ledger.box(terminal_id)
        output = await self.ledger.terminals.output(terminal_id)
        return printed(output, output.exit, box)
