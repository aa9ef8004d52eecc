"""Which models a provider offers: its own list, `GET {base}/models`, as OpenAI's protocol has it."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from typing import Any, Final, Protocol, cast, runtime_checkable

import anyio

from punie.domain.errors import EngineError, EngineErrorKind

LIMIT_S: Final = 2.0
LIMIT_BYTES: Final = 1_048_576
LIMIT_MODELS: Final = 200
LIMIT_NAME: Final = 200


class _Body(Protocol):
    def iter_bytes(self, chunk_size: int | None = None) -> AsyncIterator[bytes]: ...


@runtime_checkable
class _Client(Protocol):
    """The part that the clients of these providers share; the address, the key and the proxy are theirs."""

    @property
    def models(self) -> Any: ...

    def with_options(self, *, timeout: float, max_retries: int) -> Any: ...


async def listed_models(client: object) -> tuple[str, ...]:
    """The usable names in the provider's list, 200 at most, in its order; none where its client has no such list.

    Raises `EngineError` where the list cannot be read, or not within 2 s and 1 MiB.
    """
    if not isinstance(client, _Client):
        return ()
    try:
        with anyio.fail_after(LIMIT_S):
            return _names_in(await _read(client))
    except Exception as error:
        # Each provider's client has errors of its own, and a list is never worth more than a line in the log.
        raise EngineError(
            EngineErrorKind.CONNECTION.value,
            f"The provider's list of models cannot be read ({type(error).__name__}: {error}).",
            "Name models in the setting `models` instead.",
        ) from error


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


def _names_in(body: bytes) -> tuple[str, ...]:
    value: object = json.loads(body)
    data = cast("dict[str, object]", value).get("data") if isinstance(value, dict) else None
    entries = cast("list[object]", data) if isinstance(data, list) else []
    names = (cast("dict[str, object]", entry).get("id") for entry in entries if isinstance(entry, dict))
    fit = (name for name in names if isinstance(name, str) and 0 < len(name) <= LIMIT_NAME and name.isprintable())
    return tuple(dict.fromkeys(fit))[:LIMIT_MODELS]
