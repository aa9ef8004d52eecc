"""The light half of the engine: it can be built and opened before the library is imported (DESIGN.md section 7)."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread

from punie.adapters.pydantic_ai.settings import ModelSettings
from punie.domain.compaction import CompactionOrder
from punie.domain.model_choice import Effort
from punie.domain.transcript import Transcript
from punie.domain.turn import StopReason, Turn
from punie.ports.engine import Engine, EngineSession, HistoryKeeper, ToolDoor
from punie.ports.event_sink import EventSink

if TYPE_CHECKING:
    from pydantic_ai.models import Model

    from punie.adapters.pydantic_ai.conversation import Conversation, Kit


class PydanticAiEngine(Engine):
    """One model, by the name Pydantic AI gives it (`provider:name`, or `test`); lives as long as the process.

    The library and the provider's client are loaded once, by `load` or by the first turn, and shared by all
    sessions: one HTTP client, closed by `aclose`. `build` makes the model instead of its name, for tests.
    """

    def __init__(
        self, model: str, settings: ModelSettings | None = None, *, build: Callable[[], Model] | None = None
    ) -> None:
        self._name = model
        self._settings = settings or ModelSettings()
        self._build = build
        self._lock = threading.Lock()
        self._kit: Kit | None = None

    @property
    def name(self) -> str:
        """One history serves every model: the library sends each what it takes."""
        return "pydantic-ai"

    def open(self, session_id: str, snapshot: bytes | None = None, since: Transcript = ()) -> PydanticAiSession:
        """A session, at once: what is wrong with the set-up or the snapshot is raised by `load` and the first turn."""
        return PydanticAiSession(self, snapshot, since)

    def load(self) -> Kit:
        """Import the library and build the model; a second or more the first time, so not on the event loop.

        Safe to call from any thread, and again. Raises `EngineError` (`auth`, `configuration`) saying what to set or
        to install.
        """
        with self._lock:
            if self._kit is None:
                from punie.adapters.pydantic_ai.conversation import Kit

                self._kit = Kit.of(self._name, self._settings, self._build)
            return self._kit

    async def ready(self) -> Kit:
        """As `load`, in a thread of its own where there is something to load."""
        if self._kit is not None:
            return self._kit
        return await anyio.to_thread.run_sync(self.load, abandon_on_cancel=True)

    @property
    def efforts(self) -> tuple[Effort, ...]:
        """How hard the model can be told to think; empty where it cannot, and before it is loaded."""
        return tuple(Effort) if self._kit is not None and self._kit.thinks else ()

    async def siblings(self) -> tuple[str, ...]:
        """The models that its provider offers beside it, by their whole names; none where it cannot be asked.

        Raises `EngineError`, also where the provider does not answer in time.
        """
        from punie.adapters.pydantic_ai.model_list import listed_models

        kit = await self.ready()
        prefix, colon, _ = self._name.partition(":")
        if not colon:
            return ()
        await kit.enter()
        return tuple(f"{prefix}:{name}" for name in await listed_models(kit.model))

    async def aclose(self) -> None:
        """Close the HTTP client, once the sessions are done. Idempotent."""
        kit, self._kit = self._kit, None
        if kit is not None:
            await kit.aclose()


class PydanticAiSession(EngineSession, HistoryKeeper):
    """One conversation; lives as long as its session, on asyncio only (the library is tied to it)."""

    def __init__(self, engine: PydanticAiEngine, snapshot: bytes | None, since: Transcript) -> None:
        self._engine = engine
        self._snapshot = snapshot
        self._since = since
        self._conversation: Conversation | None = None

    async def run(self, turn: Turn, *, tools: ToolDoor, events: EventSink) -> StopReason:
        """Let the model work on the turn; see the port for what holds after a cancel or an error."""
        conversation = await self._ready()
        return await conversation.run(turn, tools=tools, events=events)

    def snapshot(self) -> bytes | None:
        """The messages so far, as Pydantic AI writes them in JSON."""
        if self._conversation is None:
            return None if self._since else self._snapshot or b"[]"
        return self._conversation.snapshot()

    async def compact(self, order: CompactionOrder, *, events: EventSink) -> bool:
        """Have the model summarise what was said; see the port."""
        conversation = await self._ready()
        return await conversation.compact(order, events)

    def forget(self) -> None:
        """Begin anew; what it was opened with is forgotten as well."""
        self._snapshot, self._since = None, ()
        if self._conversation is not None:
            self._conversation.forget()

    async def aclose(self) -> None:
        """Nothing is held: the HTTP client is the engine's."""

    async def _ready(self) -> Conversation:
        if self._conversation is None:
            kit = await self._engine.ready()
            self._conversation = kit.converse(self._snapshot, self._since)
            self._snapshot, self._since = None, ()
        return self._conversation
