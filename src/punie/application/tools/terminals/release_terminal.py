"""The tool `release_terminal`, for terminals of the client or of this machine."""

from __future__ import annotations

from punie.application.tools.session_tool import CallContext
from punie.application.tools.terminals.terminal_tool import TerminalTool, terminal_tool
from punie.domain.tools.metadata import Permission
from punie.domain.tools.tool import ToolResult


class ReleaseTerminal(TerminalTool):
    """Ends the program of a terminal and forgets the terminal."""

    TITLE = "Releasing {terminal_id}"
    DESCRIPTOR = terminal_tool(
        "release_terminal", "Stop a background command and forget its terminal.", Permission.EXECUTE
    )

    async def act(self, terminal_id: str, context: CallContext) -> ToolResult:
        await self.ledger.release(terminal_id)
        return ToolResult.success(f"Released terminal {terminal_id}.")
