"""A tool provider: two tools, `ping` and `echo`, that any session can have.

Run it: `python examples/echo_tools.py`. A package offers it to every Punie on a machine with an entry point:
`[project.entry-points."punie.tool_providers"]` and `echo = "your_package:EchoTools"`.
"""

from __future__ import annotations

from collections.abc import Mapping

import anyio

from punie import api

TEXT = api.ToolParameter("text", "string", "what to say back", required=True, max_length=1000)
PING = api.ToolDescriptor("ping", "think", "Answer pong.")
ECHO = api.ToolDescriptor("echo", "think", "Say a text back.", [TEXT])


class EchoTools(api.ToolProvider, api.ToolExecutor):
    """Made once a session, with the session's directory."""

    def __init__(self, cwd: str) -> None:
        self.cwd = cwd

    async def discover_tools(self) -> api.CatalogAnswer:
        return api.CatalogAnswer(api.ToolCatalog((PING, ECHO)))

    async def execute(self, call: api.ToolCall, progress: api.CallProgress) -> api.ToolResult:
        if call.name == "ping":
            return api.ToolResult.success("pong")
        if call.name == "echo" and isinstance(call.arguments, Mapping):
            return api.ToolResult.success(str(call.arguments["text"]))
        raise api.ToolFailedError(f"There is no {call.name} here.")  # the model reads it as the call's result


async def main() -> None:
    """A session with the two tools, called through its desk."""
    plug_ins = api.PlugIns((api.PlugIn("echo", EchoTools),))
    async with api.open_session_here("/", plug_ins=plug_ins) as session:
        for name, arguments in (("ping", {}), ("echo", {"text": "Hello!"}), ("echo", {"text": 5}), ("echo", {})):
            result = await session.call(name, arguments)
            print(f"{name} {arguments}: {result.outcome}: {result.text}")


if __name__ == "__main__":
    anyio.run(main)
