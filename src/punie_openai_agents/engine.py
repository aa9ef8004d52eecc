"""The light half of the engine: it can be built and opened before the SDK is imported (DESIGN.md section 7)."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

import anyio.to_thread

from punie.api import (
    CompactionOrder,
    Effort,
    EngineError,
    EngineErrorKind,
    EngineSession,
    EventSink,
    HistoryKeeper,
    ModelEngine,
    ModelSettings,
    StopReason,
    ToolDoor,
    Transcript,
    Turn,
    needs_package,
)

if TYPE_CHECKING:
    from punie_openai_agents.conversation import Conversation
    from punie_openai_agents.models import Kit


class OpenAiAgentsEngine(ModelEngine):
    """One model that speaks a protocol of OpenAI's, by its name `provider:name`; lives as long as the process.

    The SDK and the client are loaded once, by `load` or by the first turn, and shared by all sessions: one HTTP client,
    closed by `aclose`. `reach` says how the model is reached at the time of loading, in the thread that loads.
    """

    def __init__(
        self, model: str, connection: ModelSettings | None = None, *, reach: Callable[[], ModelSettings] | None = None
    ) -> None:
        self._model = model
        self._connection = connection or ModelSettings()
        self._reach = reach
        self._lock = threading.Lock()
        self._kit: Kit | None = None
        self._retired: list[Kit] = []

    @property
    def name(self) -> str:
        """One history serves every model: it is kept in the SDK's own items."""
        return "openai-agents"

    def open(self, session_id: str, snapshot: bytes | None = None, since: Transcript = ()) -> OpenAiAgentsSession:
        """A session, at once: what is wrong with the set-up or the snapshot is raised by `load` and the first turn."""
        return OpenAiAgentsSession(self, snapshot, since)

    def load(self) -> Kit:
        """Import the SDK and make the client; a second or more the first time, so not on the event loop.

        Safe to call from any thread, and again. Raises `EngineError` (`auth`, `configuration`) saying what to set or
        to install.
        """
        with self._lock:
            if self._kit is None:
                self._kit = self._made(self._connection if self._reach is None else self._reach())
            return self._kit

    def load_anew(self, refused: Kit) -> Kit:
        """As `load`, after the provider refused the credentials: with others, where there are others by now."""
        with self._lock:
            if self._kit is refused and self._reach is not None:
                connection = self._reach()
                if connection != self._connection:
                    self._kit = self._made(connection)
                    self._retired.append(refused)
        return self.load()

    def reach_by(self, reach: Callable[[], ModelSettings]) -> None:
        """Take what says how the model is reached; see the port."""
        self._reach = reach

    async def ready(self) -> Kit:
        """As `load`, in a thread of its own where there is something to load."""
        if self._kit is not None:
            return self._kit
        return await anyio.to_thread.run_sync(self.load, abandon_on_cancel=True)

    @property
    def efforts(self) -> tuple[Effort, ...]:
        """How hard the model can be told to think; empty where it cannot, and before it is loaded."""
        return tuple(Effort) if self._kit is not None and self._kit.thinks else ()

    def context_tokens(self) -> int | None:
        """None: the settings or the model's name tell."""
        return None

    @property
    def lists_models(self) -> bool:
        """True: every provider is asked for its models."""
        return True

    async def siblings(self) -> tuple[str, ...]:
        """The models that its provider offers beside it, by their whole names.

        Raises `EngineError`, also where the provider does not answer in time.
        """
        from punie_openai_agents.model_list import listed_models

        kit = await self.ready()
        prefix = self._model.partition(":")[0]
        return tuple(f"{prefix}:{name}" for name in await listed_models(kit.client))

    async def ask_once(self) -> str:
        """The model's answer to one small request, which may be empty. Raises `EngineError`."""
        kit = await self.ready()
        from punie_openai_agents.asking import ask_once

        return await ask_once(kit)

    async def aclose(self) -> None:
        """Close the HTTP client, once the sessions are done. Idempotent."""
        kits, self._kit, self._retired = [*self._retired, self._kit], None, []
        for kit in kits:
            if kit is not None:
                await kit.client.close()

    def _made(self, connection: ModelSettings) -> Kit:
        try:
            from punie_openai_agents.models import Kit
        except ImportError as error:
            raise needs_package(self._model, "Install it: pip install 'punie[openai-agents]'") from error
        kit = Kit.of(self._model, connection)
        self._connection = connection
        return kit


class OpenAiAgentsSession(EngineSession, HistoryKeeper):
    """One conversation; lives as long as its session, on asyncio only (the SDK is tied to it)."""

    def __init__(self, engine: OpenAiAgentsEngine, snapshot: bytes | None, since: Transcript) -> None:
        self._engine = engine
        self._snapshot = snapshot
        self._since = since
        self._conversation: Conversation | None = None
        self._refused = False

    async def run(self, turn: Turn, *, tools: ToolDoor, events: EventSink) -> StopReason:
        """Let the model work on the turn; see the port for what holds after a cancel or an error."""
        conversation = await self._ready()
        try:
            return await conversation.run(turn, tools, events)
        except EngineError as error:
            self._refused = error.kind == EngineErrorKind.AUTH.value
            raise

    def snapshot(self) -> bytes | None:
        """The turns so far, as JSON of the SDK's items."""
        if self._conversation is None:
            return None if self._since else self._snapshot or b'{"format":1,"turns":[]}'
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
            from punie_openai_agents.conversation import Conversation

            self._conversation = Conversation.of(kit, self._snapshot, self._since)
            self._snapshot, self._since = None, ()
        elif self._refused:
            load = self._engine.load_anew
            kit = await anyio.to_thread.run_sync(load, self._conversation.kit, abandon_on_cancel=True)
            self._conversation.kit, self._refused = kit, False
        return self._conversation
