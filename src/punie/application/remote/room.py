"""One session of a server that many clients connect to: whose it is now, and what waits for its client."""

from __future__ import annotations

import anyio
from attrs import define, field, frozen

from punie.application.remote.carried_turn import CarriedTurn
from punie.application.remote.held_sink import HeldSink
from punie.application.remote.seat import ClientSeat
from punie.domain.session.events import NoticeGiven
from punie.domain.session.session import OpenedSession, SessionSpec
from punie.domain.tools.discovery import ClientCapabilities
from punie.ports.people import Peer


@frozen
class Asked:
    """What a session was opened with; a client that comes back with anything else finds other tools behind it.

    `shows` says whether its terminals are shown as those of this machine, which depends on the version of ACP.
    """

    spec: SessionSpec
    capabilities: ClientCapabilities
    shows: bool = False

    @classmethod
    def of(cls, spec: SessionSpec, peer: Peer) -> Asked:
        """What that client asks for."""
        return cls(spec, peer.capabilities, peer.shown is not None)


@define(eq=False)
class Room:
    """Lives as long as its session is open; `owner` is the connection whose it is, None while its client is away.

    `opened` is what the session answered when it was opened, None until then; `left_s` is when its client left it.
    `turn` is the one that was begun and is not over, `adopted` whether a client that came back waits for its end, and
    `news` what nobody was there to hear.
    """

    asked: Asked
    seat: ClientSeat
    owner: object | None
    opened: OpenedSession | None = None
    left_s: float = 0.0
    turn: CarriedTurn | None = None
    adopted: bool = False
    news: NoticeGiven | None = None
    waiting: anyio.CancelScope = field(factory=anyio.CancelScope, init=False)
    held: HeldSink | None = field(default=None, init=False)

    def take(self, owner: object) -> None:
        """The session is that connection's from now on, and nobody waits for another."""
        self.owner = owner
        self.waiting.cancel()

    def vacate(self) -> anyio.CancelScope:
        """Its client is gone; gives the scope in which it is to be waited for."""
        self.owner, self.adopted, self.left_s = None, False, anyio.current_time()
        self.seat.leave()
        if self.held is not None:
            self.held.drop()
            self.held = None
        self.waiting = anyio.CancelScope()
        return self.waiting

    def hold(self, peer: Peer) -> HeldSink:
        """Where events go from now on: to that client, as soon as it was told what it missed."""
        self.held = HeldSink(peer.events)
        return self.held
