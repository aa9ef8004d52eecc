"""get_shell_info: what machine and shell commands meet, told without running anything (S0-09)."""

from __future__ import annotations

from attrs import asdict, frozen

from punie.application.tools.built_in import BuiltInTool, schema
from punie.application.tools.session_tool import CallContext, PreparedCall
from punie.domain.tools.tool import ToolDescriptor, ToolKind, ToolResult
from punie.domain.values.json_value import JsonObject
from punie.ports.tools import CallProgress


@frozen
class ShellInfo:
    """Facts about this machine, read once when the process starts."""

    system: str
    release: str
    machine: str
    shell: str
    python: str


@frozen
class GetShellInfo(BuiltInTool):
    """Tells the facts, and the session's directory."""

    info: ShellInfo
    DESCRIPTOR = ToolDescriptor(
        "get_shell_info",
        ToolKind.READ,
        "Tell the operating system, shell and working directory.",
        schema({}),
        categories=("terminal",),
    )

    async def prepare(self, arguments: JsonObject, context: CallContext) -> PreparedCall:
        async def effect(_progress: CallProgress) -> ToolResult:
            facts = {**asdict(self.info), "cwd": context.cwd}
            return ToolResult.success("\n".join(f"{key}: {value}" for key, value in facts.items()), structured=facts)

        return PreparedCall(effect)
