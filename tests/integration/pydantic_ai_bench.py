"""The Pydantic AI engine on a real HTTP endpoint, with what the endpoint saw."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from attrs import define, field

from punie.adapters.pydantic_ai.engine import PydanticAiEngine, PydanticAiSession
from punie.domain.model.place import ModelSettings
from punie.domain.session.turn import StopReason, Turn, TurnLimits
from punie.domain.values.content import Prompt
from tests.fakes.engine_side import FakeEventSink, FakeToolDoor
from tests.stub_openai import StepSource, StubOpenAI

_numbers = itertools.count(1)


@define(eq=False)
class Talk:
    """One session against a scripted endpoint."""

    stub: StubOpenAI
    engine: PydanticAiEngine
    session: PydanticAiSession
    door: FakeToolDoor = field(factory=FakeToolDoor)
    sink: FakeEventSink = field(factory=FakeEventSink)

    async def say(
        self, prompt: str | Prompt, *, instructions: str = "", limits: TurnLimits | None = None
    ) -> StopReason:
        """Run one turn; `sink` is a fresh one afterwards."""
        self.sink = FakeEventSink()
        blocks = Prompt.of_text(prompt) if isinstance(prompt, str) else prompt
        turn = Turn(f"turn-{next(_numbers)}", "session", blocks, instructions, limits or TurnLimits())
        return await self.session.run(turn, tools=self.door, events=self.sink)

    def messages(self, request: int = -1) -> list[dict[str, Any]]:
        """The messages of one request, the last by default."""
        return self.stub.requests[request].messages

    def roles(self, request: int = -1) -> list[str]:
        """The roles of one request's messages."""
        return [message["role"] for message in self.messages(request)]


@asynccontextmanager
async def talking(
    steps: Sequence[StepSource], *, model: str = "openai-chat:stub", door: FakeToolDoor | None = None
) -> AsyncIterator[Talk]:
    """A session with a model that answers these steps."""
    with StubOpenAI(steps) as stub:
        engine = PydanticAiEngine(model, ModelSettings(base_url=stub.base_url, api_key="sk-stub-key-123456"))
        try:
            yield Talk(stub, engine, engine.open("session"), door or FakeToolDoor())
        finally:
            await engine.aclose()


def dangling(messages: Sequence[dict[str, Any]]) -> set[str]:
    """The ids of calls that have no result, or results that have no call: a provider refuses both."""
    calls = [call["id"] for message in messages for call in message.get("tool_calls") or ()]
    results = [message["tool_call_id"] for message in messages if message["role"] == "tool"]
    return set(calls) ^ set(results)
