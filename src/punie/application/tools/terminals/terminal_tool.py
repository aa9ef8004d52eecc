"""What the tools on one terminal of the session share, and how a program's output is told."""

from __future__ import annotations

from abc import abstractmethod

from attrs import evolve, frozen

from punie.application.tools.built_in import STRING, BuiltInTool, details, schema
from punie.application.tools.session_tool import CallContext, PreparedCall
from punie.application.tools.terminal_ledger import TerminalLedger
from punie.domain.tools.arguments import text_argument
from punie.domain.tools.discovery import Serving
from punie.domain.tools.metadata import Capability, Permission
from punie.domain.tools.roles import Column, Role
from punie.domain.tools.tool import ToolDescriptor, ToolKind, ToolResult
from punie.domain.values.content import TerminalView, Text
from punie.domain.values.json_value import JsonObject
from punie.domain.values.terminal import ExitStatus, TerminalOutput
from punie.ports.tools import CallProgress


@frozen
class TerminalTool(BuiltInTool):
    """A tool that acts on one terminal of this session."""

    ledger: TerminalLedger
    SERVING = Serving.BY_CLIENT
    NEEDS = (TerminalLedger,)

    async def prepare(self, arguments: JsonObject, context: CallContext) -> PreparedCall:
        terminal_id = self.ledger.check(text_argument(arguments, "terminal_id"))

        async def effect(_progress: CallProgress) -> ToolResult:
            return await self.act(terminal_id, context)

        return PreparedCall(effect, watches_time=True)

    @abstractmethod
    async def act(self, terminal_id: str, context: CallContext) -> ToolResult:
        """Do it to a terminal that is known to be ours."""
        ...


def terminal_tool(name: str, description: str, does: Permission) -> ToolDescriptor:
    """A tool on one of the session's own terminals, for which nobody needs to be asked."""
    return ToolDescriptor(
        name,
        ToolKind.EXECUTE,
        description,
        schema({"terminal_id": STRING}),
        categories=("terminal",),
        roles={"terminal_id": Role.PLAIN},
        column=Column.READ,
        details=details(Capability.TERMINAL, does),
    )


def printed(
    output: TerminalOutput, ended: ExitStatus | None, view: tuple[TerminalView, ...] = (), more: str = ""
) -> ToolResult:
    """The output as the model reads it: its text, whether it was cut, and how the program ended.

    Where a file has what was cut, the desk puts it before the text for the model; a person is told of the file.
    """
    body = output.text if not output.text or output.text.endswith("\n") else f"{output.text}\n"
    text, structured = f"{body}[{ended or 'still running'}]{more}", _structured(output, ended)
    if output.kept is None:
        cut = "[the beginning of the output was dropped]\n" if output.truncated else ""
        return ToolResult.success(cut + text, content=view or None, structured=structured)
    where = f"[what was printed before this is in {output.kept.path} until the session ends]\n"
    result = ToolResult.success(text, content=view or (Text(where + text),), structured=structured)
    return evolve(result, kept=output.kept)


def _structured(output: TerminalOutput, ended: ExitStatus | None) -> dict[str, object]:
    return {
        "output": output.text,
        "truncated": output.truncated,
        "exitCode": ended.exit_code if ended else None,
        "signal": ended.signal if ended else None,
    }
