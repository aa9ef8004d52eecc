"""MCP at an address: streamable HTTP, and the older form with events, both with bounds of ours."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from typing import Any, Final, cast
from urllib.parse import urlsplit

import anyio.lowlevel
import httpx2
from mcp.client._transport import TransportStreams
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import (
    MCP_DEFAULT_SSE_READ_TIMEOUT,
    MCP_DEFAULT_TIMEOUT,
    create_mcp_http_client,
)

from punie.adapters.mcp.messages import LINE_LIMIT_BYTES
from punie.domain.servers.server import HttpTransport

_EVENTS: Final = "text/event-stream"
_HERE: Final = frozenset({"127.0.0.1", "::1", "localhost"})


def http_streams(
    transport: HttpTransport, answered: Callable[[int], None], limit_bytes: int = LINE_LIMIT_BYTES
) -> AbstractAsyncContextManager[TransportStreams]:
    """Message streams to that address; `answered` hears the HTTP status of everything that comes back.

    An answer over the limit breaks off as it is read. Events are bounded one by one: by the same limit, and by the
    library's own of 1 MiB in the older form.
    """
    here = urlsplit(transport.url).hostname in _HERE
    client: Any = partial(_client, answered, limit_bytes, here)
    if transport.sse:
        return cast("AbstractAsyncContextManager[TransportStreams]", _older(transport, client))
    return _streamable(transport, client, limit_bytes)


def _older(transport: HttpTransport, client: Any) -> AbstractAsyncContextManager[Any]:
    return sse_client(transport.url, dict(transport.headers), httpx_client_factory=client)


@asynccontextmanager
async def _streamable(transport: HttpTransport, client: Any, limit_bytes: int) -> AsyncIterator[TransportStreams]:
    async with (
        client(headers=dict(transport.headers)) as http,
        streamable_http_client(transport.url, http_client=http, max_sse_event_size=limit_bytes) as streams,
    ):
        yield streams


class _BoundedBody(httpx2.AsyncByteStream):
    """A body that breaks off beyond the limit; lives as long as its response."""

    def __init__(self, inner: httpx2.AsyncByteStream, limit_bytes: int) -> None:
        self._inner = inner
        self._left = limit_bytes

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for chunk in self._inner:
            self._left -= len(chunk)
            if self._left < 0:
                raise httpx2.ReadError("the answer is too long")
            yield chunk

    async def aclose(self) -> None:
        await self._inner.aclose()


def _client(answered: Callable[[int], None], limit_bytes: int, here: bool, **settings: Any) -> httpx2.AsyncClient:
    async def look_at(response: httpx2.Response) -> None:
        answered(response.status_code)
        if not response.headers.get("content-type", "").startswith(_EVENTS):
            response.stream = _BoundedBody(cast("httpx2.AsyncByteStream", response.stream), limit_bytes)
        await anyio.lowlevel.checkpoint()

    client = _direct_client(**settings) if here else create_mcp_http_client(**settings)
    client.event_hooks = {"response": [look_at]}
    return client


def _direct_client(**settings: Any) -> httpx2.AsyncClient:
    """For this machine: no proxy of the environment's comes between, or hears what is meant for a server here."""
    timeout = httpx2.Timeout(MCP_DEFAULT_TIMEOUT, read=MCP_DEFAULT_SSE_READ_TIMEOUT)
    wanted: dict[str, Any] = {"timeout": timeout} | settings
    return httpx2.AsyncClient(trust_env=False, **wanted)
