"""A session that is open: what its turns share, and the turn that runs."""

from __future__ import annotations

import logging
from types import TracebackType
from typing import Self

import anyio
from anyio.abc import TaskGroup
from attrs import define, field

from punie.application.instructions import Instructions
from punie.application.session_desk import ToolDesk
from punie.application.terminal_ledger import TerminalLedger
from punie.domain.discovery import Tier
from punie.domain.session import OpenedSession
from punie.domain.turn import TurnLimits
from punie.ports.engine import EngineSession

CLOSE_LIMIT_S = 2.0
"""How long an engine may take to let go of its connections."""


@define
class LiveSession:
    """Everything one session holds; an async context manager that is entered and left by the task that owns it.

    Leaving it stops the watching for changed tools, releases every terminal, takes down the tools that were set up and
    closes the engine's conversation. `model` is its name in the usage ledger.
    """

    id: str
    desk: ToolDesk
    engine: EngineSession
    instructions: Instructions
    ledgers: tuple[TerminalLedger, ...]
    turn_limits: TurnLimits
    log: logging.Logger
    model: str = "none"
    tier: Tier = field(default=Tier.DEFAULT, init=False)
    _tasks: TaskGroup | None = field(default=None, init=False)

    async def __aenter__(self) -> Self:
        self._tasks = await anyio.create_task_group().__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        assert self._tasks is not None  # noqa: S101 - entered before left
        self._tasks.cancel_scope.cancel()
        try:
            for ledger in self.ledgers:
                await ledger.release_everything()
            await self.desk.aclose()
            with anyio.move_on_after(CLOSE_LIMIT_S, shield=True):
                await self.engine.aclose()
        finally:
            stop = await self._tasks.__aexit__(kind, error, trace)
        return stop

    async def open(self) -> OpenedSession:
        """Find out which tools there are, and start to watch for changes."""
        assert self._tasks is not None  # noqa: S101 - entered before opened
        report = await self.desk.toolbox.fill()
        self.tier = report.tier
        self._tasks.start_soon(self.desk.toolbox.watch)
        self._tasks.start_soon(self.desk.pace.keep)
        return OpenedSession(self.id, report)
