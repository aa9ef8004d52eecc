"""One model of Pydantic AI, as the engine uses it: the agent around the model, and the turns that it runs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeAlias

import pydantic_ai
from attrs import define, field
from pydantic_ai import Agent, AgentRun
from pydantic_ai.exceptions import UsageLimitExceeded
from pydantic_ai.messages import ModelMessage
from pydantic_ai.models import Model
from pydantic_ai.settings import ModelSettings as RequestSettings
from pydantic_ai.usage import UsageLimits

from punie.adapters.pydantic_ai.failures import FAILURES, place_of, run_error
from punie.adapters.pydantic_ai.history import dump, lasting, mended, messages_of, parse, user_content
from punie.adapters.pydantic_ai.models import build_model, request_settings
from punie.adapters.pydantic_ai.provider_search import ProviderSearch, Search, search_of, without_searches
from punie.adapters.pydantic_ai.shortening import pieces_of, shortened, tokens_of
from punie.adapters.pydantic_ai.streaming import PlainModel, StreamedModel, TurnStopped, usage_of
from punie.adapters.pydantic_ai.toolset import FitsTheContext, Listed, OnlyTheDesk, TurnDeps
from punie.domain.errors import EngineError
from punie.domain.model.choice import Effort
from punie.domain.model.compaction import Piece
from punie.domain.model.provider import ModelSettings
from punie.domain.model.text import encodable
from punie.domain.model.usage import Usage
from punie.domain.session.transcript import Transcript
from punie.domain.session.turn import StopReason, Turn
from punie.ports.engine import EventSink, LibraryTurn, ModelLibrary, ToolDoor, Upkeep

Answer: TypeAlias = str | None
"""A model may have nothing more to say once its tools are done."""

Messages: TypeAlias = list[ModelMessage]


class PydanticAiLibrary(ModelLibrary[Messages]):
    """A model with its HTTP client, and the agent around it.

    `build` makes the model in the place of the one by that name. Raises `EngineError` where the model cannot be set up.
    """

    def __init__(self, name: str, settings: ModelSettings, build: Callable[[], Model] | None = None) -> None:
        # It would print one to stderr at the first run; ty takes the library's switch for a constant.
        pydantic_ai.BANNER_ENABLED = False  # ty: ignore[invalid-assignment] # a switch
        self.model = build_model(name, settings) if build is None else build()
        self.agent = Agent[TurnDeps, Answer](
            name="punie",
            deps_type=TurnDeps,
            output_type=[str, type(None)],
            capabilities=[OnlyTheDesk(), ProviderSearch(), FitsTheContext()],
            model_settings=request_settings(settings),
        )
        profile, provider = self.model.profile, self.model.provider
        thinks = profile.get("supports_thinking") or profile.get("thinking_always_enabled")
        self.place = place_of(name, self.model, settings)
        self.client = None if provider is None else provider.client
        self.efforts = tuple(Effort) if thinks else ()
        self.failures = FAILURES
        self._entered = False

    def explained(self, failure: Exception) -> EngineError:
        """The failure for people."""
        return run_error(failure, self.place)

    async def enter(self) -> None:
        """Take charge of the HTTP client, so that it stays open between turns and across sessions."""
        if not self._entered:
            self._entered = True
            await self.model.__aenter__()

    async def aclose(self) -> None:
        """Close the HTTP client."""
        if self._entered:
            self._entered = False
            await self.model.__aexit__(None, None, None)

    def decode(self, snapshot: bytes | None, since: Transcript) -> Messages:
        """The messages of a snapshot, and those of a transcript."""
        history = [] if snapshot is None else parse(snapshot)
        history = without_searches(history) if search_of(self.model) is Search.NONE else history
        return [*history, *messages_of(since)]

    def encode(self, history: Messages) -> bytes:
        """The messages as the library writes them in JSON."""
        return dump(lasting(history))

    def begin(
        self, history: Messages, turn: Turn, *, tools: ToolDoor, events: EventSink, upkeep: Upkeep[Messages]
    ) -> AgentTurn:
        """A turn of the agent."""
        model = StreamedModel(self.model, turn.id, events, upkeep)
        return AgentTurn(self.agent, turn, history, TurnDeps(turn.session_id, tools, Listed(), model, upkeep))

    async def ask(
        self, question: str, *, instructions: str, max_tokens: int, say: Callable[[str], Awaitable[None]]
    ) -> tuple[str, Usage]:
        """One request of an agent without tools."""
        result = await Agent(name="punie-summary", output_type=[str, type(None)]).run(
            encodable(question),
            model=PlainModel(self.model, say),
            instructions=encodable(instructions) or None,
            model_settings={"max_tokens": max_tokens},
            infer_name=False,
        )
        return result.output or "", usage_of(result.usage, result.usage.requests)

    def tokens(self, history: Messages) -> int:
        """How much of the context it takes."""
        return tokens_of(history)

    def pieces(self, history: Messages) -> Sequence[Piece]:
        """Its prompts and answers."""
        return pieces_of(history)

    def shortened(self, history: Messages, first: int, prompt: int | None, summary: str) -> Messages:
        """The history behind a summary; see the port."""
        return shortened(history, first, prompt, summary)


@define(eq=False)
class AgentTurn(LibraryTurn[Messages]):
    """One turn of the agent; lives as long as it."""

    _agent: Agent[TurnDeps, Answer]
    _turn: Turn
    _history: Messages
    _deps: TurnDeps
    _run: AgentRun[TurnDeps, Answer] | None = field(default=None, init=False)
    _done: bool = field(default=False, init=False)

    async def work(self) -> StopReason:
        """Run the agent until the model is done, or stops early for a reason that ends the turn."""
        try:
            await self._work()
        except TurnStopped as stopped:
            return stopped.reason
        except UsageLimitExceeded:
            return StopReason.MAX_TURN_REQUESTS
        self._done = True
        return StopReason.END_TURN

    async def _work(self) -> None:
        turn = self._turn
        async with self._agent.iter(
            user_content(turn.prompt),
            message_history=self._history or None,
            model=self._deps.model,
            instructions=encodable(turn.instructions) or None,
            deps=self._deps,
            model_settings=None if turn.effort is None else RequestSettings(thinking=turn.effort.value),
            usage_limits=UsageLimits(request_limit=turn.limits.max_requests),
            infer_name=False,
        ) as run:
            self._run = run
            async for _ in run:
                pass

    def left(self, *, refused: bool) -> Messages:
        """The messages with those of the turn; see the port."""
        messages, model = self._messages(), self._deps.model
        if self._done:
            return lasting(messages)
        if refused and model.left_over is None and not model.answered:
            return self._history if self._deps.upkeep.shorter is None else lasting(messages[:-1])
        return mended(messages, model.left_over, self._deps.finished)

    def _messages(self) -> Messages:
        """The history with what the turn added to it, or what became of all that where it was made shorter."""
        if self._run is None:
            return list(self._history)
        if self._deps.upkeep.shorter is not None:
            return list(self._run.all_messages())
        return [*self._history, *self._run.new_messages()]
