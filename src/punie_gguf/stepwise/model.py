"""The model behind a llama.cpp server, as the agent sees it: tools go out as a grammar, steps come back as parts."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from types import TracebackType
from typing import Any, Final, cast

import httpx2
from openai import AsyncOpenAI
from pydantic_ai.exceptions import ModelContextWindowExceededError, ModelHTTPError, UnexpectedModelBehavior
from pydantic_ai.messages import (
    ModelMessage,
    ModelResponseStreamEvent,
    PartDeltaEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
)
from pydantic_ai.models import Model, ModelRequestParameters, StreamedResponse
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIChatModelSettings
from pydantic_ai.models.wrapper import WrapperModel
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.settings import ModelSettings as RequestSettings
from pydantic_ai.tools import RunContext
from pydantic_ai.usage import RequestUsage

from punie.api import ModelSettings
from punie_gguf.stepwise.reading import Called, Piece, StepReader
from punie_gguf.stepwise.schema import step_schema
from punie_gguf.stepwise.telling import plain_messages

REPLY_TOKENS: Final = 4_096
"""The most that one step may take: under a grammar a small model may repeat itself without end."""

TEMPERATURE: Final = 0.2
SILENCE_LIMIT_S: Final = 600.0
"""Reading a long prompt takes a machine without a graphics card minutes, in which nothing is sent."""

CONNECT_LIMIT_S: Final = 5.0

_NOWHERE: Final = "http://127.0.0.1:9/v1"
_TOO_LONG: Final = "exceed_context_size_error"
_COMPACT: Final = {"x-guidance": {"whitespace_flexible": False}}
"""No spaces between the parts of a step: a model that is out of its depth would write nothing else."""


class StepwiseModel(WrapperModel):
    """Wraps OpenAI's protocol as llama.cpp speaks it. `reach` says where the server is now: it may be another one."""

    def __init__(self, name: str, reach: Callable[[], ModelSettings]) -> None:
        # No proxy: the server is on this machine. No second try: it would only be slower.
        limits = httpx2.Timeout(SILENCE_LIMIT_S, connect=CONNECT_LIMIT_S)
        self._client = AsyncOpenAI(
            base_url=_NOWHERE,
            api_key="none",
            max_retries=0,
            http_client=httpx2.AsyncClient(trust_env=False, timeout=limits),
        )
        self._reach = reach
        super().__init__(OpenAIChatModel(name, provider=OpenAIProvider(openai_client=self._client)))

    @property
    def base_url(self) -> None:
        """None: the address changes whenever the server is started."""
        return None

    @property
    def system(self) -> str:
        """A name that is no provider's, so that no price is looked up."""
        return "llama.cpp"

    def plainly(self) -> Model:
        """The same model without tools and forms: for a summary."""
        self._go()
        return self.wrapped

    @asynccontextmanager
    async def request_stream(
        self,
        messages: list[ModelMessage],
        model_settings: RequestSettings | None,
        model_request_parameters: ModelRequestParameters,
        run_context: RunContext[Any] | None = None,
    ) -> AsyncGenerator[StreamedResponse]:
        """One step. Raises what the wrapped model raises, and knows llama.cpp's way to say that it was too long."""
        self._go()
        tools = model_request_parameters.function_tools
        instructions = "\n\n".join(part.content for part in model_request_parameters.instruction_parts or ())
        plain = plain_messages(messages, instructions, tools)
        settings = OpenAIChatModelSettings(max_tokens=REPLY_TOKENS, temperature=TEMPERATURE)
        settings |= cast("OpenAIChatModelSettings", model_settings or {})
        settings["extra_body"] = {"grammar": grammar(step_schema(tools)), "cache_prompt": True}
        try:
            async with self.wrapped.request_stream(plain, settings, ModelRequestParameters(), None) as inner:
                yield StepStream(model_request_parameters, inner)
        except ModelHTTPError as error:
            if _says_too_long(error):
                raise ModelContextWindowExceededError(self.model_name, str(error)) from error
            raise

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc_val: BaseException | None, exc_tb: TracebackType | None
    ) -> bool | None:
        """Close the HTTP client as well: it is ours."""
        left = await super().__aexit__(exc_type, exc_val, exc_tb)
        await self._client.close()
        return left

    def _go(self) -> None:
        where = self._reach()
        self._client.base_url = where.base_url or _NOWHERE
        self._client.api_key = where.api_key or "none"


@dataclass
class StepStream(StreamedResponse):
    """One step as it is written: the inner stream's text, taken apart."""

    inner: StreamedResponse
    _reader: StepReader = field(default_factory=StepReader, init=False)
    _count: int = field(default=0, init=False)

    async def _get_event_iterator(self) -> AsyncIterator[ModelResponseStreamEvent]:
        async for event in self.inner:
            for piece in self._reader.feed(_text(event)):
                for made in self._made(piece):
                    yield made
        self.finish_reason = self.inner.finish_reason
        if not self._reader.whole and self.finish_reason == "stop":
            raise UnexpectedModelBehavior("it ended in the middle of a step")

    def _made(self, piece: Piece) -> Iterator[ModelResponseStreamEvent]:
        if isinstance(piece, Called):
            self._count += 1
            yield self._parts_manager.handle_tool_call_part(
                vendor_part_id=f"call-{self._count}", tool_name=piece.tool, args=piece.arguments
            )
        else:
            yield from self._parts_manager.handle_text_delta(vendor_part_id="text", content=piece.text)

    @property
    def usage(self) -> RequestUsage:
        """As the server counted."""
        return self.inner.usage

    async def close_stream(self) -> None:
        """Hang up; the server stops at once."""
        await self.inner.close_stream()

    @property
    def model_name(self) -> str:
        """The file's name."""
        return self.inner.model_name

    @property
    def provider_name(self) -> str:
        """A name that is no provider's."""
        return "llama.cpp"

    @property
    def provider_url(self) -> None:
        """A port of this machine that says nothing tomorrow."""
        return None

    @property
    def timestamp(self) -> datetime:
        """When it was asked."""
        return self.inner.timestamp


def grammar(schema: dict[str, Any]) -> str:
    """The schema for llama.cpp's LLGuidance, which holds the model to it from the first character on."""
    return "%llguidance {}\nstart: %json " + json.dumps(_COMPACT | schema, ensure_ascii=False)


def stepwise(name: str, reach: Callable[[], ModelSettings]) -> Callable[[], Model]:
    """The builder of the model of that name."""
    return lambda: StepwiseModel(name, reach)


def _text(event: ModelResponseStreamEvent) -> str:
    if isinstance(event, PartStartEvent) and isinstance(event.part, TextPart):
        return event.part.content
    if isinstance(event, PartDeltaEvent) and isinstance(event.delta, TextPartDelta):
        return event.delta.content_delta
    return ""


def _says_too_long(error: ModelHTTPError) -> bool:
    body = cast("dict[str, object]", error.body) if isinstance(error.body, dict) else {}
    return _TOO_LONG in {body.get("type"), body.get("code")}
