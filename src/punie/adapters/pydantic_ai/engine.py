"""The light half of the engine: it can be built and opened before the library is imported (DESIGN.md section 7)."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread

from punie.domain.errors import EngineError, EngineErrorKind
from punie.domain.model.choice import Effort
from punie.domain.model.compaction import CompactionOrder
from punie.domain.model.place import ModelSettings
from punie.domain.session.transcript import Transcript
from punie.domain.session.turn import StopReason, Turn
from punie.ports.engine import EngineSession, EventSink, HistoryKeeper, ModelEngine, ToolDoor

if TYPE_CHECKING:
    from pydantic_ai.models import Model

    from punie.adapters.pydantic_ai.conversation import Conversation, Kit


class PydanticAiEngine(ModelEngine):
    """One model, by the name Pydantic AI gives it (`provider:name`, or `test`); lives as long as the process.

    The library and the provider's client are loaded once, by `load` or by the first turn, and shared by all
    sessions: one HTTP client, closed by `aclose`. `build` makes the model instead of its name, for tests. `reach` says
    how it is reached now, in the thread that loads: it is asked again for each session, and when a key was refused.
    """

    def __init__(
        self,
        model: str,
        settings: ModelSettings | None = None,
        *,
        build: Callable[[], Model] | None = None,
        reach: Callable[[], ModelSettings] | None = None,
    ) -> None:
        self._name = model
        self._settings = settings or ModelSettings()
        self._build = build
        self._reach = reach
        self._lock = threading.Lock()
        self._kit: Kit | None = None
        self._retired: list[Kit] = []

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
                self._kit = self._made(self._settings if self._reach is None else self._reach())
            return self._kit

    def load_again(self) -> Kit:
        """As `load`, but anew where the model is reached in another way by now: somebody has set it up meanwhile."""
        with self._lock:
            if self._kit is not None and self._reach is not None:
                settings = self._reach()
                if settings != self._settings:
                    self._retired.append(self._kit)
                    self._kit = None
                    self._kit = self._made(settings)
        return self.load()

    def _made(self, settings: ModelSettings) -> Kit:
        from punie.adapters.pydantic_ai.conversation import Kit

        kit = Kit.of(self._name, settings, self._build)
        self._settings = settings
        return kit

    def reach_by(self, reach: Callable[[], ModelSettings]) -> None:
        """Take what says how the model is reached; see the port."""
        self._reach = reach

    async def ready(self) -> Kit:
        """As `load`, in a thread of its own where there is something to load."""
        if self._kit is not None:
            return self._kit
        return await anyio.to_thread.run_sync(self.load, abandon_on_cancel=True)

    async def ready_now(self) -> Kit:
        """As `load_again`, in a thread of its own."""
        return await anyio.to_thread.run_sync(self.load_again, abandon_on_cancel=True)

    @property
    def efforts(self) -> tuple[Effort, ...]:
        """How hard the model can be told to think; empty where it cannot, and before it is loaded."""
        return tuple(Effort) if self._kit is not None and self._kit.thinks else ()

    async def ask_once(self) -> str:
        """The model's answer to one small request, which may be empty. Raises `EngineError`."""
        kit = await self.ready()
        from punie.adapters.pydantic_ai.probe import ask_once

        return await ask_once(kit)

    def context_tokens(self) -> int | None:
        """None: the settings or the model's name tell."""
        return None

    @property
    def lists_models(self) -> bool:
        """True: every provider is asked for its models."""
        return True

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
        kits, self._kit, self._retired = [*self._retired, self._kit], None, []
        for kit in kits:
            if kit is not None:
                await kit.aclose()


class PydanticAiSession(EngineSession, HistoryKeeper):
    """One conversation; lives as long as its session, on asyncio only (the library is tied to it)."""

    def __init__(self, engine: PydanticAiEngine, snapshot: bytes | None, since: Transcript) -> None:
        self._engine = engine
        self._snapshot = snapshot
        self._since = since
        self._conversation: Conversation | None = None
        self._refused = False

    async def run(self, turn: Turn, *, tools: ToolDoor, events: EventSink) -> StopReason:
        """Let the model work on the turn; see the port for what holds after a cancel or an error."""
        conversation = await self._ready()
        try:
            return await conversation.run(turn, tools=tools, events=events)
        except EngineError as error:
            self._refused = error.kind == EngineErrorKind.AUTH.value
            raise

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
            kit = await self._engine.ready_now()
            self._conversation = kit.converse(self._snapshot, self._since)
            self._snapshot, self._since = None, ()
        elif self._refused:
            self._conversation = await self._with_other_credentials(self._conversation)
        return self._conversation

    async def _with_other_credentials(self, conversation: Conversation) -> Conversation:
        """The same conversation, with what a person may have set up since the provider refused it."""
        kit = await self._engine.ready_now()
        self._refused = False
        return conversation if kit is conversation.kit else kit.converse(conversation.snapshot(), ())
