"""The engine of a model file: has its server run, and leaves the conversation to an engine that can hold one."""

from __future__ import annotations

from typing import Protocol, cast

from attrs import evolve

from punie.domain.errors import EngineError
from punie.domain.model.compaction import CompactionOrder
from punie.domain.session.commands import CommandInfo
from punie.domain.session.events import ThoughtDelta
from punie.domain.session.transcript import Transcript
from punie.domain.session.turn import StopReason, Turn, TurnLimits
from punie.ports.engine import Engine, EngineSession, EventSink, HistoryKeeper, ToolDoor
from punie_gguf.server import ModelServer, Serving
from punie_gguf.sized_events import SizedEvents


class EngineBehind(Protocol):
    """Whoever speaks with the server: an engine that can be loaded ahead and is closed at the end."""

    @property
    def name(self) -> str:
        """Whose snapshots it reads."""
        ...

    def open(self, session_id: str, snapshot: bytes | None = None, since: Transcript = ()) -> EngineSession:
        """A conversation, which is a `HistoryKeeper` as well."""
        ...

    def load(self) -> object:
        """Import what it needs."""
        ...

    async def aclose(self) -> None:
        """Let go of its connections."""
        ...


class LocalModelEngine(Engine):
    """One model file; lives as long as the process. Its server runs from a session's first turn to the last's end."""

    def __init__(self, server: ModelServer, behind: EngineBehind) -> None:
        self.server = server
        self._behind = behind
        self._users: set[LocalModelSession] = set()

    @property
    def name(self) -> str:
        """That of the engine behind: the same history serves its other models."""
        return self._behind.name

    def open(self, session_id: str, snapshot: bytes | None = None, since: Transcript = ()) -> LocalModelSession:
        """A session, at once: what is wrong with the file is raised by `load` and the first turn."""
        return LocalModelSession(self, self._behind.open(session_id, snapshot, since))

    def load(self) -> None:
        """Look at the file and import what speaks with the server, which is not started. Raises `EngineError`."""
        self.server.check()
        self._behind.load()

    async def aclose(self) -> None:
        """End the server. Idempotent."""
        await self._behind.aclose()
        await self.server.stop()

    async def use(self, session: LocalModelSession, events: EventSink, message_id: str) -> Serving:
        """The running server, for a session that needs it from now on. Raises `EngineError`."""
        self._users.add(session)

        async def tell(text: str) -> None:
            await events.emit(ThoughtDelta(text, message_id))

        return await self.server.ready(tell)

    async def leave(self, session: LocalModelSession) -> None:
        """The session is over; with the last one the server ends."""
        if session in self._users:
            self._users.discard(session)
            if not self._users:
                await self.server.stop()


class LocalModelSession(EngineSession, HistoryKeeper):
    """One conversation; lives as long as its session."""

    def __init__(self, engine: LocalModelEngine, behind: EngineSession) -> None:
        self._engine = engine
        self._behind = behind
        self._keeper = cast("HistoryKeeper", behind)

    @property
    def commands(self) -> tuple[CommandInfo, ...]:
        """Those of the engine behind."""
        return self._behind.commands

    async def run(self, turn: Turn, *, tools: ToolDoor, events: EventSink) -> StopReason:
        """Load the model where that was not done, and let it work; see the port."""
        serving = await self._engine.use(self, events, f"{turn.id}-loading")
        limits = _within(turn.limits, serving.context_tokens)
        sized = SizedEvents(events, serving.context_tokens)
        try:
            return await self._behind.run(evolve(turn, limits=limits), tools=tools, events=sized)
        except EngineError as error:
            raise await self._engine.server.ended(error) or error from error

    def snapshot(self) -> bytes | None:
        """That of the engine behind."""
        return self._behind.snapshot()

    async def compact(self, order: CompactionOrder, *, events: EventSink) -> bool:
        """Have the model summarise what was said; see the port."""
        serving = await self._engine.use(self, events, f"{order.id}-loading")
        fitting = _at_most(order.above_tokens, serving.context_tokens)
        try:
            return await self._keeper.compact(evolve(order, above_tokens=fitting), events=events)
        except EngineError as error:
            raise await self._engine.server.ended(error) or error from error

    def forget(self) -> None:
        """Begin anew."""
        self._keeper.forget()

    async def aclose(self) -> None:
        """Let go of the server."""
        await self._behind.aclose()
        await self._engine.leave(self)


def _within(limits: TurnLimits, context_tokens: int) -> TurnLimits:
    """The limits of a turn, with the share of the context that there really is."""
    return evolve(
        limits, compact_above_tokens=_at_most(limits.compact_above_tokens, context_tokens, limits.compact_share)
    )


def _at_most(above_tokens: int | None, context_tokens: int, share: float = 0.8) -> int:
    real = int(context_tokens * share)
    return real if above_tokens is None else min(above_tokens, real)
