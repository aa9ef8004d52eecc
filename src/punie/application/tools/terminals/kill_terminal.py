"""The tool `kill_terminal`, for terminals of the client or of this machine."""

from __future__ import annotations

from punie.application.tools.session_tool import CallContext
from punie.application.tools.terminals.terminal_tool import TerminalTool, terminal_tool
from punie.domain.tools.metadata import Permission
from punie.domain.tools.tool import ToolResult


class KillTerminal(TerminalTool):
    """Ends the program of a terminal, whose output stays."""

    TITLE = "Stopping {terminal_id}"
    DESCRIPTOR = terminal_tool(
        "kill_terminal", "Stop a background command; its output stays readable.", Permission.EXECUTE
    )

    async def act(self, terminal_id: str, context: CallContext) -> ToolResult:
        await self.ledger.terminals.kill(terminal_id)
        return ToolResult.success(f"Stopped terminal {terminal_id}; it is not released yet.")
