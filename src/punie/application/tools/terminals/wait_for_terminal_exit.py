"""The tool `wait_for_terminal_exit`, for terminals of the client or of this machine."""

from __future__ import annotations

import anyio

from punie.application.tools.session_tool import CallContext
from punie.application.tools.terminals.terminal_tool import TerminalTool, box_note, ending, terminal_tool
from punie.domain.tools.metadata import Permission
from punie.domain.tools.tool import ToolResult


class WaitForTerminalExit(TerminalTool):
    """Waits for the end of a terminal's program, within the time limit."""

    TITLE = "Waiting for {terminal_id}"
    DESCRIPTOR = terminal_tool("wait_for_terminal_exit", "Wait until a background command ends.", Permission.READ)

    async def act(self, terminal_id: str, context: CallContext) -> ToolResult:
        box = self.ledger.box(terminal_id)
        with anyio.move_on_after(context.time_limit_s):
            ended = await self.ledger.terminals.wait(terminal_id)
            said = f"Terminal {terminal_id}: {ended}.{box_note(box, ended)}"
            return ToolResult.success(said, structured=ending(ended, box))
        return ToolResult.failure(
            f"Terminal {terminal_id} still runs after {context.time_limit_s:g} s. Wait again, or stop it with "
            "kill_terminal.",
            code="timed_out",
        )
