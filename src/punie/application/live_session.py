"""A session that is open: what its turns share, and the turn that runs."""

from __future__ import annotations

import logging

import anyio
from anyio.abc import TaskGroup
from attrs import define, field

from punie.application.instructions import Instructions
from punie.application.own_task_group import OwnTaskGroup
from punie.application.session_desk import ToolDesk
from punie.application.session_mode import SessionMode
from punie.application.terminal_ledger import TerminalLedger
from punie.application.tool_news import ToolNews
from punie.domain.discovery import Tier
from punie.domain.session import OpenedSession
from punie.domain.turn import TurnLimits
from punie.ports.engine import EngineSession

CLOSE_LIMIT_S = 2.0
"""How long an engine may take to let go of its connections."""


@define
class LiveSession(OwnTaskGroup):
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
    mode: SessionMode = field(init=False)
    tier: Tier = field(default=Tier.DEFAULT, init=False)

    def __attrs_post_init__(self) -> None:
        self.mode = SessionMode(self.desk.leave, self.desk.toolbox.registry, self.desk.events)

    async def _let_go(self, tasks: TaskGroup) -> None:
        tasks.cancel_scope.cancel()
        for ledger in self.ledgers:
            await ledger.release_everything()
        await self.desk.aclose()
        with anyio.move_on_after(CLOSE_LIMIT_S, shield=True):
            await self.engine.aclose()

    async def open(self) -> OpenedSession:
        """Find out which tools there are, and start to watch for changes."""
        tasks = self.tasks
        report = await self.desk.toolbox.fill()
        self.tier = report.tier
        self.desk.offered.settle()
        news = ToolNews(self.desk.toolbox.registry, self.desk.events)
        news.start()
        self.mode.begin()
        for job in (self.desk.toolbox.watch, self.desk.pace.keep, news.keep):
            tasks.start_soon(job)
        return OpenedSession(self.id, report, self.mode.current)
