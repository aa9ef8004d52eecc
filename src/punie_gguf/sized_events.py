"""The lane of a turn whose engine does not know how long a conversation its model takes."""

from __future__ import annotations

from attrs import define, evolve

from punie.domain.session.events import ContextUsed, SessionEvent
from punie.ports.engine import EventSink


@define(eq=False)
class SizedEvents(EventSink):
    """Adds the context's size to what is told of its use; lives as long as the turn."""

    _events: EventSink
    _size_tokens: int

    async def emit(self, event: SessionEvent) -> None:
        """Pass the event on."""
        if isinstance(event, ContextUsed):
            event = evolve(event, size_tokens=self._size_tokens)
        await self._events.emit(event)
