"""An agent made with the official Python SDK, for the reference IDE: `python agent_of_the_sdk.py` serves on stdio."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import acp
from acp import schema as models


class SdkAgent:
    """Uses every method of the client once, and says what came back."""

    def __init__(self) -> None:
        self.client: Any = None

    def on_connect(self, conn: Any) -> None:
        self.client = conn

    async def initialize(self, protocol_version: int, **_more: Any) -> acp.InitializeResponse:
        return acp.InitializeResponse(protocol_version=protocol_version)

    async def new_session(self, cwd: str, **_more: Any) -> acp.NewSessionResponse:
        self.cwd = cwd
        return acp.NewSessionResponse(session_id="sdk-session")

    async def close_session(self, session_id: str, **_more: Any) -> models.CloseSessionResponse:
        return models.CloseSessionResponse()

    async def cancel(self, session_id: str, **_more: Any) -> None:
        """Nothing runs long enough."""

    async def prompt(self, session_id: str, prompt: list[Any], **_more: Any) -> acp.PromptResponse:
        client, path = self.client, f"{self.cwd}/a.txt"
        await self._say(session_id, f"heard: {prompt[0].text}; ")
        read = await client.read_text_file(session_id=session_id, path=path, line=2, limit=1)
        await self._say(session_id, f"read: {read.content.strip()}; ")
        call = acp.start_edit_tool_call("call-1", "Editing a.txt", path, "new\n")
        await client.session_update(session_id=session_id, update=call)
        asked = await client.request_permission(
            session_id=session_id,
            tool_call=models.ToolCallUpdate(tool_call_id="call-1", title="Editing a.txt", kind="edit"),
            options=[models.PermissionOption(option_id="yes", name="Yes", kind="allow_once")],
        )
        await self._say(session_id, f"answered: {asked.outcome.outcome} {getattr(asked.outcome, 'option_id', '')}; ")
        await client.write_text_file(session_id=session_id, path=path, content="new\n")
        await self._run(session_id)
        listed = await client.ext_method("punie.dev/discover_tools", {"sessionId": session_id, "cwd": self.cwd})
        await self._say(session_id, f"tools: {[tool['name'] for tool in listed['tools']]}; ")
        used = await client.ext_method(
            "punie.dev/call_tool",
            {"sessionId": session_id, "toolCallId": "call-2", "name": "shout", "arguments": {"text": "x"}},
        )
        await self._say(session_id, f"tool said: {used['content'][0]['text']}")
        return acp.PromptResponse(stop_reason="end_turn")

    async def _run(self, session_id: str) -> None:
        arguments = ["-c", "print('from a program')"]
        terminal = await self.client.create_terminal(session_id=session_id, command=sys.executable, args=arguments)
        ids = {"session_id": session_id, "terminal_id": terminal.terminal_id}
        ended = await self.client.wait_for_terminal_exit(**ids)
        output = await self.client.terminal_output(**ids)
        await self.client.release_terminal(**ids)
        await self._say(session_id, f"ran: {output.output.strip()} {ended.exit_code}; ")

    async def _say(self, session_id: str, text: str) -> None:
        await self.client.session_update(session_id=session_id, update=acp.update_agent_message_text(text))


if __name__ == "__main__":
    agent: Any = SdkAgent()
    asyncio.run(acp.run_agent(agent, use_unstable_protocol=True))
