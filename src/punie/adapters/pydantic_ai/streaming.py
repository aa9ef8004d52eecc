"""The model as the turn sees it: each request is streamed, and its text and thoughts go straight to the sink.

The agent itself runs in its plain mode. Streaming one level below it costs a quarter less per turn than the library's
event streams, keeps the order of events in our own hands, and leaves a partial answer where a cancel finds it.
"""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from attrs import evolve
from pydantic_ai.messages import (
    ModelMessage,
    ModelResponse,
    ModelResponseStreamEvent,
    PartDeltaEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
    ThinkingPart,
    ThinkingPartDelta,
    ToolCallPart,
)
from pydantic_ai.models import Model, ModelRequestParameters, StreamedResponse
from pydantic_ai.models.wrapper import WrapperModel
from pydantic_ai.settings import ModelSettings as RequestSettings
from pydantic_ai.usage import RequestUsage, RunUsage

from punie.adapters.pydantic_ai.history import unfinished
from punie.adapters.pydantic_ai.provider_search import search_of, settled
from punie.domain.model.usage import Usage
from punie.domain.session.events import CompactionDelta, ContextUsed, TextDelta, ThoughtDelta, UsageChanged
from punie.domain.session.turn import StopReason
from punie.ports.engine import EventSink


class TurnStopped(Exception):  # noqa: N818 - an outcome, not an error
    """The model ended its answer early for a reason that ends the turn; nothing of that answer may be run."""

    def __init__(self, reason: StopReason) -> None:
        super().__init__(reason.value)
        self.reason = reason


_STOPS = {"length": StopReason.MAX_TOKENS, "content_filter": StopReason.REFUSAL}


class StreamedModel(WrapperModel):
    """Wraps the shared model for the length of one turn.

    `left_over` is what an answer that was broken off had said, for the history; None where there is none. `answered`
    says that there was a whole answer that counts. `search` is how the model's provider finds tools itself.
    """

    def __init__(self, wrapped: Model, turn_id: str, events: EventSink) -> None:
        super().__init__(wrapped)
        self.left_over: ModelResponse | None = None
        self.answered = False
        self.search = search_of(wrapped)
        self.turn_id = turn_id
        self.events = events
        self._requests = 0
        self._usage = Usage()

    async def request(
        self,
        messages: list[ModelMessage],
        model_settings: RequestSettings | None,
        model_request_parameters: ModelRequestParameters,
    ) -> ModelResponse:
        """Make one request and pass on what it streams."""
        self._requests += 1
        opened: StreamedResponse | None = None
        sent = settled(messages, frozenset(t.name for t in model_request_parameters.function_tools if t.defer_loading))
        try:
            async with self.wrapped.request_stream(sent, model_settings, model_request_parameters, None) as opened:
                await self._pass_on(opened)
            return opened.get()
        except BaseException:
            self.left_over = None if opened is None else unfinished(opened.get())
            raise

    async def conclude(self, response: ModelResponse) -> None:
        """Look at a whole answer, priced by now, before any of its calls is run. Raises `TurnStopped`."""
        await self._count(response)
        if (reason := _STOPS.get(response.finish_reason or "")) is not None:
            self.left_over = unfinished(response) if reason is StopReason.MAX_TOKENS else None
            raise TurnStopped(reason)
        self.answered = True
        _tell_apart(response)

    async def _pass_on(self, stream: StreamedResponse) -> None:
        emit = self.events.emit
        message_id = f"{self.turn_id}-{self._requests}"
        async for event in stream:
            piece = _piece(event, message_id)
            if piece is not None:
                await emit(piece)

    async def _count(self, response: ModelResponse) -> None:
        used = response.usage
        await self.count(used)
        taken = used.input_tokens + used.output_tokens  # the library counts what was cached among the input
        if taken > 0:
            await self.events.emit(ContextUsed(taken))

    async def count(self, used: RequestUsage | RunUsage, requests: int = 1) -> None:
        """Add to the turn's totals what its requests used, and say so."""
        before = self._usage
        self._usage = evolve(
            before,
            input_tokens=before.input_tokens + used.input_tokens,
            output_tokens=before.output_tokens + used.output_tokens,
            cached_read_tokens=before.cached_read_tokens + used.cache_read_tokens,
            cached_write_tokens=before.cached_write_tokens + used.cache_write_tokens,
            requests=before.requests + requests,
            cost_usd=before.cost_usd if used.cost is None else (before.cost_usd or 0.0) + float(used.cost),
        )
        await self.events.emit(UsageChanged(self._usage))


@runtime_checkable
class _HeldToAForm(Protocol):
    """A model whose answers have a form of their own, which a summary has not."""

    def plainly(self) -> Model: ...


class SummaryModel(WrapperModel):
    """Wraps the shared model for one summary: its text is the compaction's, and no part of the conversation."""

    def __init__(self, wrapped: Model, compaction_id: str, events: EventSink) -> None:
        super().__init__(wrapped.plainly() if isinstance(wrapped, _HeldToAForm) else wrapped)
        self._id = compaction_id
        self._events = events

    async def request(
        self,
        messages: list[ModelMessage],
        model_settings: RequestSettings | None,
        model_request_parameters: ModelRequestParameters,
    ) -> ModelResponse:
        """Make the request and pass on what it streams."""
        async with self.wrapped.request_stream(messages, model_settings, model_request_parameters, None) as stream:
            async for event in stream:
                if isinstance(piece := _piece(event, self._id), TextDelta):
                    await self._events.emit(CompactionDelta(self._id, piece.text))
        return stream.get()


def _piece(event: ModelResponseStreamEvent, message_id: str) -> TextDelta | ThoughtDelta | None:
    """What an event adds to the answer; the first piece of a part comes with its start."""
    if isinstance(event, PartDeltaEvent):
        delta = event.delta
        if isinstance(delta, TextPartDelta):
            return TextDelta(delta.content_delta, message_id) if delta.content_delta else None
        said = delta.content_delta if isinstance(delta, ThinkingPartDelta) else None
        return ThoughtDelta(said, message_id) if said else None
    if isinstance(event, PartStartEvent) and isinstance(event.part, (TextPart, ThinkingPart)) and event.part.content:
        kind = TextDelta if isinstance(event.part, TextPart) else ThoughtDelta
        return kind(event.part.content, message_id)
    return None


def _tell_apart(response: ModelResponse) -> None:
    """Give calls that share an id ids of their own: some servers number each answer's calls alike."""
    seen: set[str] = set()
    for part in response.parts:
        if isinstance(part, ToolCallPart):
            while part.tool_call_id in seen:
                part.tool_call_id = f"{part.tool_call_id}-{len(seen)}"
            seen.add(part.tool_call_id)
