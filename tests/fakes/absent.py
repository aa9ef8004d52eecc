"""What a session in a test does without: a store, other models, slash commands, tools beside those of the plan."""

from __future__ import annotations

import anyio.lowlevel

from punie.application.offer.discover import DiscoverTools
from punie.application.offer.registry import ToolRegistry
from punie.application.offer.toolbox import BuildTools, Toolbox
from punie.application.sessions.kept_record import KeptSession
from punie.application.sessions.recorder import Tell
from punie.application.sessions.stored import SessionShelf
from punie.application.tools.session_tool import SessionTool
from punie.application.turns.live_session import Commands, ForTheModel, LiveSession, Outcome
from punie.application.turns.model_shelf import ModelShelf, ReadyModel
from punie.domain.errors import UnknownModelError, UnknownSessionError
from punie.domain.model.provider import Effort
from punie.domain.session.log import SessionPage
from punie.domain.session.session import SessionSpec
from punie.domain.values.content import Prompt
from punie.ports.engine import EventSink


class NothingKept(SessionShelf):
    """A shelf that stays empty: every session ends with its process."""

    async def begin(self, session_id: str, spec: SessionSpec) -> KeptSession | None:
        await anyio.lowlevel.checkpoint()

    async def take_up(self, session_id: str, tell: Tell | None = None) -> KeptSession:
        await anyio.lowlevel.checkpoint()
        raise UnknownSessionError(session_id)

    async def fork(self, session_id: str, new_id: str) -> None:
        await self.take_up(session_id)

    async def page(self, cwd: str | None, cursor: str | None) -> SessionPage:
        await anyio.lowlevel.checkpoint()
        return SessionPage(())

    async def delete(self, session_id: str) -> None:
        await self.take_up(session_id)


async def nothing_kept() -> SessionShelf:
    await anyio.lowlevel.checkpoint()
    return NothingKept()


class NoShelf(ModelShelf):
    """The shelf of a session that keeps the engine with which it was opened."""

    def names(self) -> tuple[str, ...]:
        return ()

    def efforts(self, model: str) -> tuple[Effort, ...]:
        return ()

    async def take(self, model: str) -> ReadyModel:
        await anyio.lowlevel.checkpoint()
        raise UnknownModelError(model)

    async def explore(self, model: str) -> None:
        await anyio.lowlevel.checkpoint()


class NoCommands(Commands):
    """No commands: every prompt goes to the model."""

    async def look(self, session: LiveSession) -> None:
        await anyio.lowlevel.checkpoint()

    async def announce(self, session: LiveSession) -> None:
        await anyio.lowlevel.checkpoint()

    async def refresh(self, session: LiveSession) -> None:
        await anyio.lowlevel.checkpoint()

    async def outcome(self, session: LiveSession, prompt: Prompt, events: EventSink, turn_id: str) -> Outcome:
        return ForTheModel(prompt)


async def no_others(*_tools: object) -> tuple[SessionTool, ...]:
    await anyio.lowlevel.checkpoint()
    return ()


def planned_alone(discover: DiscoverTools, build: BuildTools, *disabled: str) -> Toolbox:
    """A toolbox with the tools of the plan alone."""
    toolbox = Toolbox(discover, build, ToolRegistry(), no_others, no_others)
    toolbox.registry.disable_always(disabled)
    return toolbox
