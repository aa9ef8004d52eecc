"""Tools that need setting up and taking down: once each, in that order (S2-02, S2-06, S2-07)."""

from __future__ import annotations

import logging

import anyio
from attrs import define, field

from punie.application.tools.session_tool import Lifecycle, SessionTool

DISPOSE_LIMIT_S = 1.0
"""How long one tool may hold up the end of its session."""


@define(eq=False)
class _Life:
    tool: Lifecycle
    lock: anyio.Lock = field(factory=anyio.Lock)
    ready: bool = False


@define
class ToolLifetimes:
    """Which tools of a session were set up; lives as long as the session."""

    log: logging.Logger
    _lives: dict[int, _Life] = field(factory=dict[int, _Life], init=False)

    async def ready(self, tool: SessionTool) -> None:
        """Set the tool up at its first call; a call that comes meanwhile waits. A failure is tried again next time."""
        if not isinstance(tool, Lifecycle):
            return
        life = self._lives.get(id(tool))
        if life is None:
            life = self._lives[id(tool)] = _Life(tool)  # holds the tool, so that its id stays its own
        if life.ready:
            return
        async with life.lock:
            if not life.ready:
                await tool.initialise()
                life.ready = True

    async def dispose(self) -> None:
        """Take down, last first, every tool whose setting up was begun; one that fails is logged."""
        while self._lives:
            _, life = self._lives.popitem()
            with anyio.move_on_after(DISPOSE_LIMIT_S, shield=True):
                try:
                    await life.tool.dispose()
                except Exception:  # somebody else's tool must not keep the session from closing
                    self.log.exception("taking down %s failed", type(life.tool).__name__)
