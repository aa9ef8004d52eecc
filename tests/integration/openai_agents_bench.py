"""The engine on the Agents SDK at a real HTTP endpoint, with what that saw over either of OpenAI's protocols."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from attrs import define, field

from punie.domain.model.choice import Effort
from punie.domain.model.place import ModelSettings
from punie.domain.session.turn import StopReason, Turn, TurnLimits
from punie.domain.values.content import Prompt
from punie_openai_agents.engine import OpenAiAgentsEngine, OpenAiAgentsSession
from tests.fakes.engine_side import FakeEventSink, FakeToolDoor
from tests.stub_openai import StepSource, StubOpenAI

KEY = "sk-stub-key-123456"
CHAT, RESPONSES = "openai-chat:stub", "openai:gpt-5"
BOTH = (CHAT, RESPONSES)

_numbers = itertools.count(1)


@define(eq=False)
class Talk:
    """One session against a scripted endpoint."""

    stub: StubOpenAI
    engine: OpenAiAgentsEngine
    session: OpenAiAgentsSession
    door: FakeToolDoor = field(factory=FakeToolDoor)
    sink: FakeEventSink = field(factory=FakeEventSink)

    async def say(
        self,
        prompt: str | Prompt,
        *,
        instructions: str = "",
        limits: TurnLimits | None = None,
        effort: Effort | None = None,
    ) -> StopReason:
        """Run one turn; `sink` is a fresh one afterwards."""
        self.sink = FakeEventSink()
        blocks = Prompt.of_text(prompt) if isinstance(prompt, str) else prompt
        turn = Turn(f"turn-{next(_numbers)}", "session", blocks, instructions, limits or TurnLimits(), effort)
        return await self.session.run(turn, tools=self.door, events=self.sink)

    def messages(self, request: int = -1) -> list[dict[str, Any]]:
        """The messages, or items, of one request, the last by default."""
        return self.stub.requests[request].messages

    def told(self, request: int = -1) -> list[tuple[str, str]]:
        """Who said what in that request, the same for both protocols; calls by their names."""
        return [line for message in self.messages(request) for line in _lines(message)]


def _lines(message: dict[str, Any]) -> list[tuple[str, str]]:
    match message.get("type"):
        case "function_call":
            return [("call", message["name"])]
        case "function_call_output":
            return [("result", message["output"])]
        case "reasoning":
            return [("thought", message["encrypted_content"])]
        case _:
            pass
    calls = [("call", call["function"]["name"]) for call in message.get("tool_calls") or ()]
    role = "result" if message["role"] == "tool" else message["role"]
    content = message.get("content") or ""
    text = content if isinstance(content, str) else "\n".join(part.get("text", "[other]") for part in content)
    return [*([(role, text)] if text else []), *calls]


@asynccontextmanager
async def talking(
    steps: Sequence[StepSource], *, model: str = CHAT, door: FakeToolDoor | None = None
) -> AsyncIterator[Talk]:
    """A session with a model that answers these steps."""
    with StubOpenAI(steps) as stub:
        engine = OpenAiAgentsEngine(model, ModelSettings(stub.base_url, KEY))
        try:
            yield Talk(stub, engine, engine.open("session"), door or FakeToolDoor())
        finally:
            await engine.aclose()


def dangling(messages: Sequence[dict[str, Any]]) -> set[str]:
    """The ids of calls that have no result, or results that have no call: a provider refuses both."""
    calls = [call["id"] for message in messages for call in message.get("tool_calls") or ()]
    results = [message["tool_call_id"] for message in messages if message.get("role") == "tool"]
    calls += [item["call_id"] for item in messages if item.get("type") == "function_call"]
    results += [item["call_id"] for item in messages if item.get("type") == "function_call_output"]
    return set(calls) ^ set(results)
