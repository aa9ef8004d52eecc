"""The sessions of a server, and which connection each belongs to (M-14)."""

from __future__ import annotations

import logging
from contextlib import suppress

import anyio
from anyio.abc import TaskGroup
from attrs import define, field

from punie.application.agent import PunieAgent
from punie.application.own_task_group import OwnTaskGroup
from punie.application.remote.room import Asked, Room
from punie.application.remote.seat import AWAY_LIMIT_S, ClientSeat
from punie.domain.errors import SessionHeldError, TooManySessionsError, UnknownSessionError

GRACE_S = 600.0
"""How long a session waits for its client to come back."""

SESSIONS_LIMIT = 100
"""How many sessions may be open in one server."""

ELSEWHERE = "another connection of this server"


@define(eq=False)
class Reception(OwnTaskGroup):
    """Knows whose every open session is; an async context manager that lives as long as the server, inside `agent`.

    A `holder` is a connection, known by being itself.

    A session whose client lost its connection goes on for `grace_s` seconds and is then closed; it stays where sessions
    are kept. What runs in its tasks ends with it. At `sessions_limit` one that waits for its client is closed for a new
    one: it has to be idle and kept, and waited the longest.
    """

    agent: PunieAgent
    log: logging.Logger
    grace_s: float = GRACE_S
    away_limit_s: float = AWAY_LIMIT_S
    sessions_limit: int = SESSIONS_LIMIT
    _coming: int = field(default=0, init=False)
    _closing: dict[str, anyio.Event] = field(factory=dict[str, anyio.Event], init=False)
    _rooms: dict[str, Room] = field(factory=dict[str, Room], init=False)

    async def _let_go(self, tasks: TaskGroup) -> None:
        tasks.cancel_scope.cancel()

    def room(self, session_id: str) -> Room | None:
        """The open session of that id; one that ended by itself is forgotten here."""
        room = self._rooms.get(session_id)
        if room is None or room.opened is None or self.agent.live(session_id) is not None:
            return room
        self.forget(session_id, room)
        return None

    def of(self, holder: object, session_id: str) -> Room:
        """The session as its own connection uses it.

        Raises `SessionHeldError` where it is another's, and `UnknownSessionError` where it is nobody's: a client that
        comes back loads or resumes a session before it uses it.
        """
        room = self.not_elsewhere(holder, session_id)
        if room is None or room.owner is None:
            raise UnknownSessionError(session_id)
        return room

    def not_elsewhere(self, holder: object, session_id: str) -> Room | None:
        """The session where it is open; raises `SessionHeldError` where it is another connection's."""
        room = self.room(session_id)
        if room is not None and room.owner not in {None, holder}:
            raise SessionHeldError(session_id, ELSEWHERE)
        return room

    async def reserve(self) -> None:
        """Make sure of a place for one more session, until `enter` or `give_back`. Raises `TooManySessionsError`."""
        while self._places() >= self.sessions_limit:
            closing = next(iter(self._closing.values()), None)
            longest = self._longest_away()
            if longest is not None:
                self.log.info("session %s: closed, for %d are open", longest[0], self.sessions_limit)
                with suppress(UnknownSessionError):  # it ended by itself
                    await self.close(*longest)
            elif closing is not None:
                await closing.wait()
            else:
                raise TooManySessionsError(self.sessions_limit)
        self._coming += 1

    def _places(self) -> int:
        for session_id in tuple(self._rooms):
            self.room(session_id)  # forgets one that ended by itself
        return len(self._rooms) + len(self._closing) + self._coming

    def give_back(self) -> None:
        """The place is taken, or not needed."""
        self._coming -= 1

    def _longest_away(self) -> tuple[str, Room] | None:
        """Of the sessions that can be loaded again and do nothing, the one that waits for its client the longest."""
        waiting = [(session_id, room) for session_id, room in self._rooms.items() if self._idles(session_id, room)]
        return min(waiting, key=lambda one: one[1].left_s, default=None)

    def _idles(self, session_id: str, room: Room) -> bool:
        live = self.agent.live(session_id)
        return (
            room.owner is None and live is not None and live.recorder.record.is_kept and not self.agent.busy(session_id)
        )

    def enter(self, holder: object, session_id: str, asked: Asked) -> Room:
        """A session is about to be open; whatever was known under that id is not it any more."""
        before = self._rooms.get(session_id)
        if before is not None:
            self.forget(session_id, before)
        room = self._rooms[session_id] = Room(asked, ClientSeat(self.away_limit_s), holder)
        return room

    def forget(self, session_id: str, room: Room) -> None:
        """The session is to be open no longer: its turn ends, and nothing waits for its client."""
        self.agent.cancel(session_id)  # first: a turn that is over must not go on with a question that nobody answered
        if self._rooms.get(session_id) is room:
            del self._rooms[session_id]
        room.waiting.cancel()
        room.seat.give_up()

    async def close(self, session_id: str, room: Room | None) -> None:
        """Close it for good; raises `UnknownSessionError` where it is not open."""
        if room is not None:
            self.forget(session_id, room)
        closed = self._closing[session_id] = anyio.Event()
        try:
            await self.agent.close_session(session_id)
        finally:
            self._closing.pop(session_id, None)
            closed.set()

    async def settled(self, session_id: str) -> None:
        """Wait until a session that is being closed may be opened again."""
        while (closing := self._closing.get(session_id)) is not None:
            await closing.wait()

    def vacate(self, session_id: str, room: Room) -> None:
        """Its client is gone; returns at once. One that is being closed is not waited for."""
        if self._rooms.get(session_id) is not room:
            return
        self.log.info("session %s: its client is gone; it is kept open for %g s", session_id, self.grace_s)
        self.tasks.start_soon(self._wait, session_id, room, room.vacate())

    def left(self, holder: object) -> None:
        """A connection ended: its sessions go on without a client. Returns at once."""
        for session_id, room in tuple(self._rooms.items()):
            if room.owner is holder:
                self.vacate(session_id, room)

    async def _wait(self, session_id: str, room: Room, waiting: anyio.CancelScope) -> None:
        with waiting:
            await anyio.sleep(self.grace_s)
        if waiting.cancel_called:
            return
        self.log.info("session %s: nobody came back for it; it is closed", session_id)
        if self.agent.live(session_id) is not None:
            await self.close(session_id, room)
        else:
            self.forget(session_id, room)
