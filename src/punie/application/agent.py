"""Sessions by id: opening, prompting, cancelling, closing (ports/agent)."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import Self, TypeAlias

import anyio
from anyio.abc import TaskGroup, TaskStatus
from attrs import define, field

from punie.application.live_session import LiveSession
from punie.application.run_turn import PromptTurn
from punie.domain.content import Prompt
from punie.domain.errors import SessionBusyError, UnknownSessionError
from punie.domain.execution import RunningCall, ToolStatistics
from punie.domain.session import OpenedSession, SessionSpec
from punie.ports.agent import Agent
from punie.ports.peer import Peer

SessionScope: TypeAlias = Callable[[str, SessionSpec, Peer], AbstractAsyncContextManager[LiveSession]]
"""Builds a session and takes it down again; the composition root knows how."""

TURN_END_LIMIT_S = 3.0
"""How long a cancelled turn may hold up the closing of its session."""


@define
class _Place:
    """A session's entry in the register: the session, the turn that runs, and the word to go."""

    session: LiveSession
    turn: PromptTurn | None = None
    turns: int = 0
    closing: anyio.Event = field(factory=anyio.Event)
    gone: anyio.Event = field(factory=anyio.Event)


@define
class PunieAgent(Agent):
    """The sessions of one connection; an async context manager that lives as long as the connection.

    Each session is owned by one task, which enters everything it needs and leaves it in reverse.
    """

    scope: SessionScope
    log: logging.Logger
    _places: dict[str, _Place] = field(factory=dict, init=False)
    _opening: dict[str, LiveSession] = field(factory=dict, init=False)
    _tasks: TaskGroup | None = field(default=None, init=False)

    async def __aenter__(self) -> Self:
        self._tasks = await anyio.create_task_group().__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        assert self._tasks is not None  # noqa: S101 - entered before left
        for place in self._places.values():
            _dismiss(place)
        return await self._tasks.__aexit__(kind, error, trace)

    async def open_session(self, spec: SessionSpec, connect: Callable[[str], Peer]) -> OpenedSession:
        assert self._tasks is not None  # noqa: S101 - entered before used
        session_id = f"sess_{uuid.uuid4().hex}"
        opened: OpenedSession = await self._tasks.start(self._host, session_id, spec, connect(session_id))
        return opened

    def begin_turn(self, session_id: str, prompt: Prompt) -> PromptTurn:
        place = self._place(session_id)
        if place.turn is not None:
            raise SessionBusyError(session_id)

        def leave() -> None:
            place.turn = None

        place.turn = PromptTurn(place.session, prompt, leave, first=place.turns == 0)
        place.turns += 1
        return place.turn

    def cancel(self, session_id: str) -> None:
        place = self._places.get(session_id)
        if place is not None and place.turn is not None:
            place.turn.cancel()

    def running_calls(self, session_id: str) -> tuple[RunningCall, ...]:
        return self._place(session_id).session.desk.running.all()

    def call_statistics(self, session_id: str) -> ToolStatistics:
        return self._place(session_id).session.desk.statistics.snapshot()

    def cancel_calls(self, session_id: str, correlation_id: str) -> int:
        return self._place(session_id).session.desk.running.stop(correlation_id)

    def tools_changed(self, session_id: str) -> None:
        place = self._places.get(session_id)
        # A client knows the id from the moment it is asked for its tools, and they may change before it has the answer.
        session = self._opening.get(session_id) if place is None else place.session
        if session is not None:
            session.desk.toolbox.mark_stale()

    async def close_session(self, session_id: str) -> None:
        place = self._place(session_id)
        del self._places[session_id]
        _dismiss(place)
        await place.gone.wait()

    def _place(self, session_id: str) -> _Place:
        place = self._places.get(session_id)
        if place is None:
            raise UnknownSessionError(session_id)
        return place

    async def _host(
        self, session_id: str, spec: SessionSpec, peer: Peer, *, task_status: TaskStatus[OpenedSession]
    ) -> None:
        """Own one session from its first resource to its last."""
        place: _Place | None = None
        try:
            async with self.scope(session_id, spec, peer) as session:
                self._opening[session_id] = session
                opened = await session.open()
                place = self._places[session_id] = _Place(self._opening.pop(session_id))
                task_status.started(opened)
                await place.closing.wait()
                if place.turn is not None:
                    with anyio.move_on_after(TURN_END_LIMIT_S):
                        await place.turn.done.wait()
        except Exception:
            if place is None:
                raise
            # The session was served; what broke while it was taken down must not take the others along.
            self.log.exception("session %s: closing it failed", session_id)
        finally:
            self._opening.pop(session_id, None)
            if place is not None:
                self._places.pop(session_id, None)
                place.gone.set()


def _dismiss(place: _Place) -> None:
    if place.turn is not None:
        place.turn.cancel()
    place.closing.set()
