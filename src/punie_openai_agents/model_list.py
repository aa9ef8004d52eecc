"""Which models a provider offers: its own list, `GET {base}/models`."""

from __future__ import annotations

from typing import Final

import anyio
import httpx2
from openai import AsyncOpenAI, OpenAIError

from punie.api import LIMIT_BYTES, LIMIT_S, names_in, unreadable_list

_UNREADABLE: Final = (OpenAIError, httpx2.HTTPError, ValueError, RecursionError, TimeoutError)


async def listed_models(client: AsyncOpenAI) -> tuple[str, ...]:
    """The names in the provider's list, in its order. Raises `EngineError` where it cannot be read in time and size."""
    try:
        with anyio.fail_after(LIMIT_S):
            return names_in(await _read(client))
    except _UNREADABLE as error:
        raise unreadable_list(error) from error


async def _read(client: AsyncOpenAI) -> bytes:
    once = client.with_options(timeout=LIMIT_S, max_retries=0)
    body = bytearray()
    async with once.models.with_streaming_response.list() as response:
        async for piece in response.iter_bytes():
            body += piece
            if len(body) > LIMIT_BYTES:
                raise ValueError(f"it is larger than {LIMIT_BYTES} bytes")
    return bytes(body)
