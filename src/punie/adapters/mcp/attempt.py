"""One connection to a server, as its owner and its users both see it: being made, usable, over."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from typing import Any, Final, Protocol

import anyio
from attrs import define, evolve, field

from punie.adapters.mcp.child import ServerProcess
from punie.domain.servers.server import ServerConfig, ServerListing, StdioTransport, Transport
from punie.domain.values.display import one_line
from punie.domain.values.json_value import JsonObject
from punie.ports.servers import ServerChannel


class CallWatch(Protocol):
    """What watches over a running call; `call_id` is the one that the client knows it by."""

    call_id: str

    async def __call__(self, progress: float, total: float | None, message: str | None) -> None:
        """Hear how far it is: how much is done, of how much, and in words."""
        ...

    def pause(self) -> AbstractContextManager[None]:
        """Until this is left a person thinks, and the call's time does not run."""
        ...


_WORDS_SHOWN = 500


class LinkError(Exception):
    """A request to a server did not get an answer that can be used; the words follow "the server ..."."""

    def __init__(self, words: str, *, lost: bool = False, code: int | None = None) -> None:
        super().__init__(words)
        self.lost = lost
        self.code = code


class Connection(Protocol):
    """A connection that stands, as its users see it."""

    legacy: bool

    async def list_tools(self) -> ServerListing:
        """All pages of the server's tools. Raises `LinkError`."""
        ...

    async def call(self, name: str, arguments: JsonObject, watch: CallWatch) -> dict[str, Any]:
        """Call a tool once; its result as it came. Raises `LinkError`."""
        ...


def _nothing() -> None:
    """Do nothing with it."""


@define(eq=False)
class Attempt:
    """One connection from its first moment to its last; the owner's task makes it and ends with it.

    `settled` is set once it is usable or failed, `finish` when it shall end (`lost`: the other side went away;
    `stopped`: we want no more of it), `ended` when nothing of it is left. `failure` is why it could not be made, or
    broke. `deaf` says that the server leaves unanswered, or left when it was asked last, which revisions it speaks.
    `stood` is called once it is usable. Where there are several ways to the server, `tried` has what became of those
    that did not lead there, and `last_way` says that no other is left.
    """

    started_s: float
    channel: ServerChannel | None = None
    settled: anyio.Event = field(factory=anyio.Event)
    ended: anyio.Event = field(factory=anyio.Event)
    finish: anyio.Event = field(factory=anyio.Event)
    making: anyio.CancelScope = field(factory=anyio.CancelScope)
    link: Connection | None = None
    process: ServerProcess | None = None
    refused: int | None = None
    failure: str | None = None
    stopped: bool = False
    lost: bool = False
    deaf: bool = False
    stood: Callable[[], None] = _nothing
    tried: str = ""
    last_way: bool = True

    @property
    def over(self) -> bool:
        """Whether no new request may be made on it; one that is still being made may come to something yet."""
        return self.stopped or (self.lost and self.link is not None) or self.ended.is_set()

    def usable(self, link: Connection) -> None:
        """It stands."""
        self.link = link
        self.settled.set()
        self.stood()

    def end(self) -> None:
        """Nothing of it is left; where it never stood and there is another way, whoever waits goes on waiting."""
        if self.last_way or self.stopped or self.link is not None:
            self.ended.set()
            self.settled.set()

    def next_way(self, tried: str) -> None:
        """One way did not lead there: forget all of it but these sentences."""
        self.begin_again()
        self.tried += tried
        self.making = anyio.CancelScope()
        self.process = self.refused = self.failure = None

    def fail(self, words: str) -> None:
        """It could not be made, or broke; the first reason counts."""
        if self.failure is None:
            self.failure = words

    def ran(self, process: ServerProcess) -> None:
        """A program was started for it."""
        self.process = process

    def answered(self, status: int) -> None:
        """An address answered with that HTTP status; 405 is how a server says that it has no stream of its own."""
        if status >= 400 and status != 405:
            self.refused = status

    def left_unanswered(self) -> None:
        """The server says nothing to the question which revisions it speaks; it costs long to ask."""
        self.deaf = True

    def begin_again(self) -> None:
        """What was remembered of the server no longer holds: it is asked everything."""
        self.deaf, self.lost, self.finish = False, False, anyio.Event()

    def lose(self) -> None:
        """The other side went away."""
        self.lost = True
        self.finish.set()

    def stop(self) -> None:
        """Want no more of it; returns at once, its owner ends it."""
        self.stopped = True
        self.finish.set()
        if self.link is None:
            self.making.cancel()

    @property
    def last_words(self) -> str:
        """How a program of ours ended and what it said to standard error, or how an address refused us.

        As sentences with a space before each; empty where it is not known.
        """
        process = self.process
        if process is None:
            return "" if self.refused is None else _refusal(self.refused)
        code = process.exit_code
        ending = "" if code is None or self.stopped else f" It ended {_ending(code)}."
        said = "".join(each if each.isprintable() or each == "\n" else " " for each in process.stderr).strip()
        if len(said) > _WORDS_SHOWN:
            said = f"...{said[-_WORDS_SHOWN:]}"
        return f"{ending} Its last words: {said}" if said else ending


def _refusal(status: int) -> str:
    hint = ": give it what it asks for, in its headers" if status in {401, 403} else ""
    return f" Its address answers with HTTP {status}{hint}."


def _ending(code: int) -> str:
    return f"with exit code {code}" if code >= 0 else f"by signal {-code}"


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
