"""The ways to one server, where there is more than one: the next is tried where the first does not lead to it."""

from __future__ import annotations

import logging
import sys
from functools import partial
from typing import Final, Protocol

import anyio
from attrs import evolve

from punie.adapters.mcp.attempt import Attempt
from punie.domain.servers.server import ServerConfig, StdioTransport, Transport
from punie.domain.values.display import one_line

_LOG: Final = logging.getLogger(__name__)


class Hold(Protocol):
    """Owns one connection from its making to its end, in one way; ends without an error, whatever happens."""

    async def __call__(self, attempt: Attempt, config: ServerConfig, /) -> None:
        """Hold it."""
        ...


class Ways:
    """Remembers which way worked last, which is the first one then; lives as long as the server.

    All ways together keep within the bound of one start. A way that is not the last has half of what is left of it,
    since a program may hang without a word; half of 30 s still is more than the 10 s that the library waits before
    it asks an old server anew in the way it knows.
    """

    def __init__(self, config: ServerConfig) -> None:
        self._config = config
        both = [way for way in (config.transport, config.fallback) if way is not None]
        # On Windows no program is started yet; the address of the same server is as good there.
        startable = [way for way in both if sys.platform != "win32" or not isinstance(way, StdioTransport)]
        self._ways: list[Transport] = startable or both

    async def hold(self, attempt: Attempt, hold: Hold) -> None:
        """Hold a connection in the first way that leads to one; where none does, the attempt has all the reasons."""
        until = anyio.current_time() + self._config.startup_s
        ways = tuple(self._ways)
        try:
            for number, way in enumerate(ways, start=1):
                left_s = max(until - anyio.current_time(), 0.0)
                attempt.stood = partial(self._remember, way, attempt.tried)
                attempt.last_way = number == len(ways)
                share_s = left_s if attempt.last_way else left_s / 2
                await hold(attempt, evolve(self._config, transport=way, startup_s=round(share_s, 2)))
                if attempt.ended.is_set():
                    break
                attempt.next_way(f" {_named(way)} {attempt.failure}.{attempt.last_words}")
            if attempt.tried and attempt.link is None:
                attempt.failure = f"cannot be reached.{attempt.tried} {_named(ways[-1])} {attempt.failure}"
        finally:
            attempt.last_way = True
            attempt.end()

    def _remember(self, way: Transport, tried: str) -> None:
        if way is not self._ways[0]:
            self._ways.sort(key=lambda each: each is not way)
            _LOG.warning("server %s: %s %s is used.", self._config.name, one_line(tried, 1_000), _named(way))


def _named(way: Transport) -> str:
    return "Its program" if isinstance(way, StdioTransport) else f"Its address {way.line}"
