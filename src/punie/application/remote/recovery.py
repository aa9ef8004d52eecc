"""Turns whose server is gone: this server takes them up, and goes on without a client until one comes."""

from __future__ import annotations

import logging

import anyio
from attrs import define, field

from punie.application.remote.reception import Reception
from punie.application.remote.room import Asked
from punie.application.remote.seat import ClientSeat, SeatedBroker, SeatedElicitor
from punie.domain.errors import LeaseLostError, PunieError, SessionStoreError, UnknownSessionError
from punie.domain.session.events import SessionEvent
from punie.domain.session.session import SessionSpec
from punie.domain.values.person import Person
from punie.ports.engine import EventSink
from punie.ports.people import Peer
from punie.ports.turns import TurnBook, TurnOrder

LOOK_S = 1.0
"""How often the book is looked at."""

HELD_S = 5.0
"""How long a turn is left alone whose session another process has."""


class _NoEars(EventSink):
    """The events of a session without a client: the log has them."""

    async def emit(self, event: SessionEvent) -> None:
        """Do nothing."""


@define(eq=False)
class TurnRecovery:
    """Looks for open turns that no process has, and for those that were called off; lives as long as the server.

    A turn that needs its client's files, terminals or tools waits for that client to load the session, `wait_s` at the
    longest by the time that this server knows of it; then the turn is ended as one that was broken off.
    """

    reception: Reception
    book: TurnBook
    log: logging.Logger
    wait_s: float
    _not_before_s: dict[str, float] = field(factory=dict[str, float], init=False)
    _seen_s: dict[str, float] = field(factory=dict[str, float], init=False)

    async def keep(self) -> None:
        """Look again and again; until cancelled."""
        while True:
            try:
                await self._look()
            except SessionStoreError as error:
                self.log.info("turns: %s", error)
            await anyio.sleep(LOOK_S)

    async def _look(self) -> None:
        for turn_id in await self.book.called_off():
            self.reception.agent.cancel_turn(turn_id)
        if self.reception.draining:
            return
        orders = await self.book.open_elsewhere()
        now = anyio.current_time()
        self._seen_s = {order.turn_id: self._seen_s.get(order.turn_id, now) for order in orders}
        for order in orders:
            if self._is_ours(order, now):
                await self._take_up(order)

    def _is_ours(self, order: TurnOrder, now: float) -> bool:
        """Whether to go on with the turn now, as far as can be told before the lease on its session is asked for."""
        if now < self._not_before_s.get(order.turn_id, now) or self.reception.room(order.session_id) is not None:
            return False
        return order.alone or now - self._seen_s[order.turn_id] > self.wait_s

    async def _take_up(self, order: TurnOrder) -> None:
        reception, session_id = self.reception, order.session_id
        person = Person(order.person, order.groups)
        spec = SessionSpec(order.cwd, order.additional_directories, person=person)
        seat = ClientSeat(reception.away_limit_s)
        room = reception.enter(self, session_id, Asked(spec, order.capabilities))
        room.seat = seat
        elicitor = SeatedElicitor(seat) if order.capabilities.elicitation_form else None
        peer = Peer(order.capabilities, SeatedBroker(seat), _NoEars(), elicitor=elicitor)
        try:
            room.opened = await reception.agent.load_session(session_id, spec, lambda _: peer)
        except UnknownSessionError:  # deleted
            reception.forget(room)
            await self._end(order.turn_id, "deleted")
        except (PunieError, LeaseLostError) as error:
            reception.forget(room)
            self._not_before_s[order.turn_id] = anyio.current_time() + HELD_S
            self.log.info("turn %s: not taken up: %s", order.turn_id, error)
        else:
            await self._went_on(order, working=room.opened.working and order.alone)

    async def _went_on(self, order: TurnOrder, *, working: bool) -> None:
        room = self.reception.room(order.session_id)
        if working and room is not None:
            self.log.info("turn %s: goes on here; its server is gone", order.turn_id)
            self.reception.agent.greet(order.session_id)
            self.reception.vacate(room)
            return
        await self._end(order.turn_id, "over")  # the log has its end, or its client did not come back
        await self.reception.close(order.session_id)

    async def _end(self, turn_id: str, how: str) -> None:
        steps = await self.book.claim(turn_id)
        if steps is not None:
            await steps.ended(how)
