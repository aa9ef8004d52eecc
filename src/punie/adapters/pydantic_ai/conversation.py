"""One conversation with the model: runs turns, and leaves a history that the next request can stand on."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import httpx2
import pydantic_ai
from attrs import define, field
from pydantic_ai import Agent, AgentRun
from pydantic_ai.exceptions import AgentRunError, UsageLimitExceeded, UserError
from pydantic_ai.messages import ModelMessage
from pydantic_ai.models import Model
from pydantic_ai.settings import ModelSettings as RequestSettings
from pydantic_ai.usage import UsageLimits

from punie.adapters.pydantic_ai.compaction import Compactor
from punie.adapters.pydantic_ai.failures import Reached, run_error
from punie.adapters.pydantic_ai.fitting import FitsTheContext
from punie.adapters.pydantic_ai.history import dump, lasting, mended, parse
from punie.adapters.pydantic_ai.models import build_model, request_settings
from punie.adapters.pydantic_ai.prompts import user_content
from punie.adapters.pydantic_ai.provider_search import ProviderSearch, Search, search_of, without_searches
from punie.adapters.pydantic_ai.streaming import StreamedModel, TurnStopped
from punie.adapters.pydantic_ai.toolset import Listed, OnlyTheDesk, TurnDeps
from punie.adapters.pydantic_ai.transcripts import messages_of
from punie.domain.model.compaction import CompactionOrder
from punie.domain.model.place import ModelSettings
from punie.domain.model.text import encodable
from punie.domain.session.transcript import Transcript
from punie.domain.session.turn import StopReason, Turn
from punie.ports.engine import EventSink, ToolDoor

Answer: TypeAlias = str | None
DeskAgent: TypeAlias = Agent[TurnDeps, Answer]


@define
class Kit:
    """What every conversation with one model shares: the model with its HTTP client, and the agent around it."""

    model: Model
    agent: DeskAgent
    reached: Reached
    _entered: bool = field(default=False, init=False)

    @classmethod
    def of(cls, name: str, settings: ModelSettings, build: Callable[[], Model] | None) -> Kit:
        """Build the model. Raises `EngineError`."""
        # It would print one to stderr at the first run; ty takes the library's switch for a constant.
        pydantic_ai.BANNER_ENABLED = False  # ty: ignore[invalid-assignment] # a switch
        model = build_model(name, settings) if build is None else build()
        return cls(model, _agent(settings), Reached.of(name, model, settings))

    def converse(self, snapshot: bytes | None, since: Transcript) -> Conversation:
        """A new conversation, or one that goes on. Raises `UnreadableSnapshotError`."""
        history = [] if snapshot is None else parse(snapshot)
        history = without_searches(history) if search_of(self.model) is Search.NONE else history
        return Conversation(self, [*history, *messages_of(since)])

    @property
    def thinks(self) -> bool:
        """Whether the model can be told how hard to think."""
        profile = self.model.profile
        return bool(profile.get("supports_thinking") or profile.get("thinking_always_enabled"))

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


def _agent(settings: ModelSettings) -> DeskAgent:
    return Agent(
        name="punie",
        deps_type=TurnDeps,
        output_type=[str, type(None)],  # a model may have nothing more to say once its tools are done
        capabilities=[OnlyTheDesk(), ProviderSearch(), FitsTheContext()],
        model_settings=request_settings(settings),
    )


@define(eq=False)
class _Attempt:
    """What one turn leaves behind, however it ends."""

    deps: TurnDeps
    run: AgentRun[TurnDeps, Answer] | None = None


@define
class Conversation:
    """Lives as long as its session; one turn at a time."""

    _kit: Kit
    _history: list[ModelMessage]
    _listed: Listed = field(factory=Listed, init=False)
    _compactor: Compactor | None = field(default=None, init=False)

    def snapshot(self) -> bytes:
        """The messages so far: in a turn those before it, or what they were made shorter to together with it."""
        shorter = None if self._compactor is None else self._compactor.shorter
        return dump(self._history if shorter is None else lasting(shorter))

    @property
    def kit(self) -> Kit:
        """What it speaks to the model with."""
        return self._kit

    async def run(self, turn: Turn, *, tools: ToolDoor, events: EventSink) -> StopReason:
        """Run one turn; see the port `EngineSession`."""
        await self._kit.enter()
        model = StreamedModel(self._kit.model, turn.id, events)
        compactor = self._compactor = Compactor(model, self._kit.reached, turn.limits.compact_above_tokens)
        attempt = _Attempt(TurnDeps(turn.session_id, tools, self._listed, model, compactor))
        try:
            return await self._ended(turn, attempt)
        finally:
            self._compactor = None

    async def _ended(self, turn: Turn, attempt: _Attempt) -> StopReason:
        try:
            return await self._work(turn, attempt)
        except TurnStopped as stopped:
            refused = stopped.reason is StopReason.REFUSAL
            self._keep(attempt, refused=refused)
            return stopped.reason
        except UsageLimitExceeded:
            self._keep(attempt)
            return StopReason.MAX_TURN_REQUESTS
        except (AgentRunError, UserError, httpx2.HTTPError) as error:
            self._keep(attempt, refused=True)
            raise run_error(error, self._kit.reached) from error
        except BaseException:
            self._keep(attempt)
            raise

    async def _work(self, turn: Turn, attempt: _Attempt) -> StopReason:
        async with self._kit.agent.iter(
            user_content(turn.prompt),
            message_history=self._history or None,
            model=attempt.deps.model,
            instructions=encodable(turn.instructions) or None,
            deps=attempt.deps,
            model_settings=None if turn.effort is None else RequestSettings(thinking=turn.effort.value),
            usage_limits=UsageLimits(request_limit=turn.limits.max_requests),
            infer_name=False,
        ) as run:
            attempt.run = run
            async for _ in run:
                pass
            self._history = lasting(self._messages(attempt))
        return StopReason.END_TURN

    def _keep(self, attempt: _Attempt, *, refused: bool = False) -> None:
        """Add what a turn that was broken off had said and done; only now, as its tasks are done.

        A prompt that was refused before anything came of it is forgotten: it would be refused again with every prompt
        that follows. So is a refused answer.
        """
        messages, model = self._messages(attempt), attempt.deps.model
        if refused and model.left_over is None and not model.answered:
            if attempt.deps.compactor.shorter is not None:
                self._history = lasting(messages[:-1])
            return
        self._history = mended(messages, model.left_over, attempt.deps.finished)

    def _messages(self, attempt: _Attempt) -> list[ModelMessage]:
        """The history with what the turn added to it, or what became of all that where it was made shorter."""
        if attempt.run is None:
            return list(self._history)
        if attempt.deps.compactor.shorter is not None:
            return list(attempt.run.all_messages())
        return [*self._history, *attempt.run.new_messages()]

    async def compact(self, order: CompactionOrder, events: EventSink) -> bool:
        """Make the history shorter; see the port `EngineSession`."""
        await self._kit.enter()
        model = StreamedModel(self._kit.model, order.id, events)
        compactor = self._compactor = Compactor(model, self._kit.reached, order.above_tokens)
        try:
            shorter = await compactor.ordered(order, self._history)
        finally:
            self._compactor = None
        self._history = self._history if shorter is None else shorter
        return shorter is not None

    def forget(self) -> None:
        """Begin anew."""
        self._history = []
