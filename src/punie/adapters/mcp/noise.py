"""What a server says that answers nobody: heard, but not faster than everybody else can bear."""

from __future__ import annotations

from typing import Final

import anyio
import mcp_types as types
from mcp.shared.message import SessionMessage

PER_S: Final = 5_000.0
"""So many stray lines in a second are borne for ever."""

AT_ONCE: Final = 20_000.0
"""So many are borne in one go, after some quiet."""

A_REQUEST: Final = 20.0
"""A request, which the library has to answer, costs as much as so many lines."""

_PER_BYTE: Final = 1 / 1_024
_FEW: Final = 16
_LONGEST_PAUSE_S: Final = 5.0


class Noise:
    """A budget that time fills again; lives as long as the stream. Who overdraws it is read more slowly.

    A server that is not read has to wait: the pipe is small. Its answers to what it was asked cost it nothing.
    """

    def __init__(self) -> None:
        self._left = AT_ONCE
        self._at_s = anyio.current_time()

    def heard(self, size_bytes: int, *, asks: bool) -> None:
        """A line of that size answered nobody; perhaps it asks for something."""
        self._left -= (A_REQUEST if asks else 1) + size_bytes * _PER_BYTE

    async def pause(self) -> None:
        """Wait until the budget is no longer overdrawn, or for long enough."""
        now_s = anyio.current_time()
        self._left = min(self._left + (now_s - self._at_s) * PER_S, AT_ONCE)
        self._at_s = now_s
        if self._left < 0:
            await anyio.sleep(min(-self._left / PER_S, _LONGEST_PAUSE_S))


def newest(messages: list[SessionMessage]) -> list[SessionMessage]:
    """Of many that came together, without notifications that a later one of them makes old; the order stays."""
    if len(messages) <= _FEW:
        return messages
    last = {key: place for place, message in enumerate(messages) if (key := _replaced_by(message)) is not None}
    return [
        message
        for place, message in enumerate(messages)
        if (key := _replaced_by(message)) is None or last[key] == place
    ]


def _replaced_by(message: SessionMessage) -> tuple[str, object] | None:
    """What a notification has in common with those that make it old; None where nothing does."""
    match message.message:
        case types.JSONRPCNotification(method="notifications/tools/list_changed" as method):
            return method, None
        case types.JSONRPCNotification(method="notifications/progress" as method, params=params):
            token = (params or {}).get("progressToken")
            return (method, token) if isinstance(token, (int, str)) else None
        case _:
            return None
