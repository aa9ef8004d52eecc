"""Events that wait while a client that came back is still told what it missed."""

from __future__ import annotations

from collections import deque

import anyio
from attrs import define, field

from punie.domain.session.events import SessionEvent
from punie.ports.engine import EventSink

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
