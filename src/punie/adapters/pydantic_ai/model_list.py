"""Which models a provider offers: its own list, `GET {base}/models`, as OpenAI's protocol has it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol, cast, runtime_checkable

import anyio
from pydantic_ai.models import Model

from punie.domain.model.listed_models import LIMIT_BYTES, LIMIT_S, names_in, unreadable_list


class _Body(Protocol):
    def iter_bytes(self, chunk_size: int | None = None) -> AsyncIterator[bytes]: ...


@runtime_checkable
class _Client(Protocol):
    """What the clients of these providers have in common: the address, the key and the proxy are theirs."""

    @property
    def models(self) -> Any: ...

    def with_options(self, *, timeout: float, max_retries: int) -> Any: ...


async def listed_models(model: Model) -> tuple[str, ...]:
    """The names in the provider's list, 200 at most, in its order; none where its client has no such list.

    Raises `EngineError` where it cannot be read, or not within 2 s and 1 MiB.
    """
    client: object = None if model.provider is None else model.provider.client
    if not isinstance(client, _Client):
        return ()
    try:
        with anyio.fail_after(LIMIT_S):
            return names_in(await _read(client))
    except Exception as error:
        # Each provider's client has errors of its own, and a list is never worth more than a line in the log.
        raise unreadable_list(error) from error


async def _read(client: _Client) -> bytes:
    once = client.with_options(timeout=LIMIT_S, max_retries=0)
    answer = cast("AbstractAsyncContextManager[_Body]", once.models.with_streaming_response.list())
    body = bytearray()
    async with answer as response:
        async for piece in response.iter_bytes():
            body += piece
            if len(body) > LIMIT_BYTES:
                raise ValueError(f"it is larger than {LIMIT_BYTES} bytes")
    return bytes(body)
