"""Where the client of one session sits, or does not for a while: what is asked of it outlives a lost connection."""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable
from typing import TypeVar

import anyio
from attrs import define, field

from punie.ports.people import Peer

AWAY_LIMIT_S = 30.0
"""How long something that only the client can do waits for it to come back."""

T = TypeVar("T")


class ClientAwayError(Exception):
    """Nobody did it. The sentence stands by itself and says why."""


@define(eq=False)
class ClientSeat:
    """One session's; lives as long as it. Whoever sits there is asked, and asked again where it left without answering.

    `sit`, `leave` and `give_up` return at once and take effect before any other task runs.
    """

    away_limit_s: float = AWAY_LIMIT_S
    _peer: Peer | None = None
    _given_up: bool = False
    _changed: anyio.Event = field(factory=anyio.Event, init=False)
    _asking: set[anyio.CancelScope] = field(factory=set[anyio.CancelScope], init=False)

    def sit(self, peer: Peer) -> None:
        """A client is there: what waits for one is put to it."""
        self._peer = peer
        self._wake()

    def leave(self) -> None:
        """It is gone: what it was doing fails, what it was asked waits for the next."""
        self._peer = None
        for scope in tuple(self._asking):
            scope.cancel()
        self._wake()

    def give_up(self) -> None:
        """Nobody will come back: nothing waits any more, now and later."""
        self._given_up = True
        self.leave()

    async def call(self, work: Callable[[Peer], Awaitable[T]], *, waits: bool = True) -> T:
        """What the client does for the session, once; raises `ClientAwayError` where it was not there to finish it."""
        peer: Peer | None = self._peer
        if peer is None and waits:
            with anyio.move_on_after(self.away_limit_s):
                peer = await self._present()
        if peer is None:
            raise ClientAwayError("No client is connected to this session now; the last one lost its connection.")
        return await self._unless_it_leaves(peer, work)

    async def ask(self, work: Callable[[Peer], Awaitable[T]]) -> T | None:
        """A question to the person there, put again to whoever comes back; None where nobody will."""
        while (peer := await self._present()) is not None:
            with contextlib.suppress(ClientAwayError):
                return await self._unless_it_leaves(peer, work)
        return None

    async def _present(self) -> Peer | None:
        while self._peer is None and not self._given_up:
            await self._changed.wait()
        return self._peer

    async def _unless_it_leaves(self, peer: Peer, work: Callable[[Peer], Awaitable[T]]) -> T:
        with anyio.CancelScope() as scope:
            self._asking.add(scope)
            try:
                return await work(peer)
            finally:
                self._asking.discard(scope)
        raise ClientAwayError(
            "The client lost its connection before it answered. Whether it did what it was asked is not known: look "
            "before you ask again."
        )

    def _wake(self) -> None:
        changed, self._changed = self._changed, anyio.Event()
        changed.set()
