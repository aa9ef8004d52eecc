"""A tool provider: two tools, `ping` and `echo`, that any session can have.

Run it: `python examples/echo_tools.py`. A package offers it to every Punie on a machine with an entry point:
`[project.entry-points."punie.tool_providers"]` and `echo = "your_package:EchoTools"`.
"""

from __future__ import annotations

from collections.abc import Mapping

import anyio

from punie.api import (
    CallProgress,
    CatalogAnswer,
    PlugIn,
    PlugIns,
    ToolCall,
    ToolCatalog,
    ToolDescriptor,
    ToolExecutor,
    ToolFailedError,
    ToolParameter,
    ToolProvider,
    ToolResult,
    open_session_here,
)

TEXT = ToolParameter("text", "string", "what to say back", required=True, max_length=1000)
PING = ToolDescriptor("ping", "think", "Answer pong.")
ECHO = ToolDescriptor("echo", "think", "Say a text back.", [TEXT])


class EchoTools(ToolProvider, ToolExecutor):
    """Made once a session, with the session's directory."""

    def __init__(self, cwd: str) -> None:
        self.cwd = cwd

    async def discover_tools(self) -> CatalogAnswer:
        return CatalogAnswer(ToolCatalog((PING, ECHO)))

    async def execute(self, call: ToolCall, progress: CallProgress) -> ToolResult:
        if call.name == "ping":
            return ToolResult.success("pong")
        if call.name == "echo" and isinstance(call.arguments, Mapping):
            return ToolResult.success(str(call.arguments["text"]))
        raise ToolFailedError(f"There is no {call.name} here.")  # the model reads it as the call's result


async def main() -> None:
    """A session with the two tools, called through its desk."""
    plug_ins = PlugIns((PlugIn("echo", EchoTools),))
    async with open_session_here("/", plug_ins=plug_ins) as session:
        for name, arguments in (("ping", {}), ("echo", {"text": "Hello!"}), ("echo", {"text": 5}), ("echo", {})):
            result = await session.call(name, arguments)
            print(f"{name} {arguments}: {result.outcome}: {result.text}")


if __name__ == "__main__":
    anyio.run(main)
