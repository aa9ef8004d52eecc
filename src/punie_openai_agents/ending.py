"""The end of an answer over Chat Completions: the SDK's model reads the finish reason and does not pass it on."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from attrs import define, field
from openai import AsyncOpenAI, AsyncStream
from openai.types.chat import ChatCompletionChunk
from openai.types.completion_usage import CompletionUsage


class BrokenOffError(Exception):
    """The stream ended before the answer did."""


@define
class Ending:
    """The end of one request, whose life it has: finish reason and usage, None until the server has sent them."""

    finish: str | None = None
    usage: CompletionUsage | None = None


class WatchedStream:
    """The chunks of one answer as they come. Raises `BrokenOffError` where they end without a finish reason."""

    def __init__(self, stream: AsyncStream[ChatCompletionChunk], ending: Ending) -> None:
        self._stream = stream
        self._ending = ending
        self.response = stream.response

    def __aiter__(self) -> AsyncIterator[ChatCompletionChunk]:
        return self

    async def __anext__(self) -> ChatCompletionChunk:
        try:
            chunk = await self._stream.__anext__()
        except StopAsyncIteration:
            if self._ending.finish is None:
                raise BrokenOffError from None
            raise
        self._ending.usage = chunk.usage or self._ending.usage
        for choice in chunk.choices:
            self._ending.finish = choice.finish_reason or self._ending.finish
        return chunk

    async def aclose(self) -> None:
        """Let go of the connection."""
        await self._stream.close()


@define(eq=False)
class WatchedClient:
    """As much of the client as the SDK's model for Chat Completions uses."""

    _client: AsyncOpenAI
    _ending: Ending
    chat: WatchedClient = field(init=False)
    completions: WatchedClient = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.chat = self.completions = self

    @property
    def base_url(self) -> Any:
        """The address of the server, by which the SDK tells OpenAI from others."""
        return self._client.base_url

    async def create(self, **request: Any) -> WatchedStream:
        """Make the request."""
        made: Any = self._client.chat.completions.create
        stream: AsyncStream[ChatCompletionChunk] = await made(**request)
        return WatchedStream(stream, self._ending)
