"""The engine of a model file: it starts the file's server, and the Pydantic AI engine holds the conversation."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, cast

import anyio.to_thread
from attrs import define, evolve

from punie.api import (
    CommandInfo,
    CompactionOrder,
    ContextUsed,
    Effort,
    EngineError,
    EngineSession,
    EventSink,
    HistoryKeeper,
    ModelEngine,
    ModelSettings,
    PydanticAiEngine,
    SessionEvent,
    StopReason,
    ThoughtDelta,
    ToolDoor,
    Transcript,
    Turn,
    TurnLimits,
)
from punie_gguf.gguf import read_model_file
from punie_gguf.memory import free_bytes
from punie_gguf.server import ModelServer, Serving

if TYPE_CHECKING:
    from punie_gguf.stepwise.model import StepwiseModel

PREFIX = "gguf:"


def local_engine(model: str, server: ModelServer | None = None) -> LocalModelEngine:
    """The engine of the model file at `model`, a path with or without the prefix `gguf:`.

    Nothing is read or imported yet. `server` takes the place of the file's own server.
    """
    path = model_path(model)
    serves = ModelServer(path) if server is None else server

    def reach() -> ModelSettings:
        serving = serves.serving
        return ModelSettings() if serving is None else ModelSettings(serving.base_url, serving.key)

    def build() -> StepwiseModel:
        from punie_gguf.stepwise.model import StepwiseModel

        return StepwiseModel(Path(path).name, reach)

    return LocalModelEngine(serves, PydanticAiEngine(f"{PREFIX}{model.removeprefix(PREFIX)}", build=build))


def model_path(model: str) -> str:
    """The absolute path of the model's file, the same for every name of that file."""
    path = os.path.expanduser(model.removeprefix(PREFIX))  # noqa: PTH111 - leaves a home that is not known as it is
    return os.path.realpath(path) if "\0" not in path else path


class LocalModelEngine(ModelEngine):
    """One model file; lives as long as the process. Its server runs from a session's first turn to the last's end.

    Engines of the same file are equal, whatever name it was given: its weights are in the memory once.
    """

    def __init__(self, server: ModelServer, behind: ModelEngine) -> None:
        self.server = server
        self._behind = behind
        self._users: set[LocalModelSession] = set()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LocalModelEngine) and other.server.path == self.server.path

    def __hash__(self) -> int:
        return hash(self.server.path)

    @property
    def name(self) -> str:
        """The name of the engine behind: the same history serves its other models."""
        return self._behind.name

    def open(self, session_id: str, snapshot: bytes | None = None, since: Transcript = ()) -> LocalModelSession:
        """A session, at once: what is wrong with the file is raised by `load` and the first turn."""
        return LocalModelSession(self, self._behind.open(session_id, snapshot, since))

    def load(self) -> None:
        """Look at the file and import what speaks with the server, which is not started. Raises `EngineError`."""
        self.server.check()
        self._behind.load()

    @property
    def efforts(self) -> tuple[Effort, ...]:
        """None: a thought would be outside of the grammar."""
        return ()

    def reach_by(self, reach: Callable[[], ModelSettings]) -> None:
        """Do nothing: the server of a file on this machine needs no key."""

    def context_tokens(self) -> int | None:
        """The length that the file's head states and the free memory allows; None where the file cannot be read."""
        try:
            return read_model_file(self.server.path).context_within(free_bytes())
        except EngineError:
            return None

    @property
    def lists_models(self) -> bool:
        """No provider has a list of the files on this machine."""
        return False

    async def siblings(self) -> tuple[str, ...]:
        """None; see `lists_models`."""
        return ()

    async def ask_once(self) -> None:
        """Nothing is asked: the model is loaded at the first prompt."""
        await anyio.to_thread.run_sync(self.load, abandon_on_cancel=True)

    async def aclose(self) -> None:
        """End the server. Idempotent."""
        await self._behind.aclose()
        await self.server.stop()

    async def use(self, session: LocalModelSession, events: EventSink, message_id: str) -> Serving:
        """The running server, for a session that uses it from now on. Raises `EngineError`."""
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
        """The commands of the engine behind."""
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
        """The snapshot of the engine behind."""
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


@define(eq=False)
class SizedEvents(EventSink):
    """Adds the context's size to the events about its use; lives as long as the turn."""

    _events: EventSink
    _size_tokens: int

    async def emit(self, event: SessionEvent) -> None:
        """Pass the event on."""
        if isinstance(event, ContextUsed):
            event = evolve(event, size_tokens=self._size_tokens)
        await self._events.emit(event)
