"""One open session of a server: its connection, the turn that runs, and the events that wait for its client."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import anyio
from attrs import define, field, frozen

from punie.application.remote.seat import ClientSeat
from punie.application.turns.run_turn import PromptTurn
from punie.domain.session.events import NoticeGiven, SessionEvent
from punie.domain.session.session import OpenedSession, SessionSpec
from punie.domain.session.turn import StopReason, TurnReport
from punie.domain.tools.discovery import ClientCapabilities
from punie.ports.agent import RunningTurn
from punie.ports.engine import EventSink
from punie.ports.people import Peer

HELD_LIMIT = 1_000
"""Events that are kept back; whoever has one more waits."""


@define(eq=False)
class HeldSink(EventSink):
    """Keeps events back until it is opened, and hands them on in order. Lives as long as its client stays."""

    lane: EventSink
    _held: deque[SessionEvent] | None = field(factory=deque[SessionEvent], init=False)
    _opened: anyio.Event = field(factory=anyio.Event, init=False)

    async def emit(self, event: SessionEvent) -> None:
        held = self._held
        if held is not None and len(held) < HELD_LIMIT:
            held.append(event)
            return
        if held is not None:
            await self._opened.wait()
        await self.lane.emit(event)

    async def wait_open(self) -> None:
        """Wait until nothing is kept back any more."""
        await self._opened.wait()

    async def open(self) -> None:
        """Hand on what was kept back; what comes meanwhile goes behind it."""
        while self._held:
            await self.lane.emit(self._held.popleft())
        self.drop()

    def drop(self) -> None:
        """Forget what was kept back: the client is gone, and finds it in the log. Returns at once."""
        self._held = None
        self._opened.set()


@define(eq=False)
class CarriedTurn(RunningTurn):
    """`run` waits for the end of `carry`, a task of the server.

    `lost` says whether the connection that asked is gone: a wait that ends with it leaves the turn alone, any other
    that is cancelled was a request to stop. `unheard` is told how a turn ended that nobody waited for any more.
    """

    turn: PromptTurn
    lost: Callable[[], bool]
    unheard: Callable[[TurnReport | Exception], None]
    id: str = field(init=False)
    _over: anyio.Event = field(factory=anyio.Event, init=False)
    _end: TurnReport | Exception = field(factory=lambda: TurnReport(StopReason.CANCELLED), init=False)

    def __attrs_post_init__(self) -> None:
        self.id = self.turn.id

    @property
    def over(self) -> bool:
        """Whether it has ended."""
        return self._over.is_set()

    async def carry(self) -> None:
        """Do the work; never raises what the turn raises."""
        try:
            self._end = await self.turn.run()
        except Exception as error:  # noqa: BLE001 - handed to whoever waits; the server's other turns go on
            self._end = error
        finally:
            self._over.set()
        if self.lost():
            self.unheard(self._end)

    async def run(self) -> TurnReport:
        try:
            await self._over.wait()
        except BaseException:
            if not self.lost():
                self.turn.cancel()
                with anyio.CancelScope(shield=True):
                    await self._over.wait()
            raise
        if isinstance(self._end, Exception):
            raise self._end
        return self._end


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
