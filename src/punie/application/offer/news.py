"""Tells a session's client which tools came and went since it was told last (S2-18, S2-19)."""

from __future__ import annotations

import anyio
from attrs import define, field

from punie.application.offer.registry import RegistryEvent, ToolRegistry
from punie.domain.session.events import ToolsChanged
from punie.domain.tools.tool import ToolDescriptor
from punie.ports.engine import EventSink

INTERVAL_S = 0.1
"""What comes within this time after an event is told in one more: no client is flooded."""


@define
class ToolNews:
    """Compares what was told with what is there, so that a burst counts once and nothing piles up.

    Lives as long as the session, whose task runs `keep`.
    """

    registry: ToolRegistry
    events: EventSink
    _told: dict[str, ToolDescriptor] = field(factory=dict[str, ToolDescriptor], init=False)
    _wake: anyio.Event = field(factory=anyio.Event, init=False)

    async def keep(self) -> None:
        """Tell of every change from the moment `start` was called on, until cancelled."""
        while True:
            await self._wake.wait()
            self._wake = anyio.Event()
            change = self._since_told()
            if change is not None:
                await self.events.emit(change)
            await anyio.sleep(INTERVAL_S)

    def start(self) -> None:
        """Whoever listens knows, or can ask for, what is there now."""
        self._told = self._now()
        self.registry.subscribe(self._hear)

    def _hear(self, _event: RegistryEvent) -> None:
        self._wake.set()

    def _since_told(self) -> ToolsChanged | None:
        told, now = self._told, self._now()
        self._told = now
        gone = tuple(name for name, tool in told.items() if now.get(name) != tool)
        come = tuple(tool for name, tool in now.items() if told.get(name) != tool)
        return ToolsChanged(gone, come) if gone or come else None

    def _now(self) -> dict[str, ToolDescriptor]:
        return {tool.name: tool for tool in self.registry.tools}
