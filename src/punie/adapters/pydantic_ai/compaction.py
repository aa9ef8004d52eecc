"""The model summarises what was said before, and the history goes on from that; unasked where it grows too long."""

from __future__ import annotations

from collections.abc import Sequence

import anyio
import httpx2
from attrs import define, field
from pydantic_ai import Agent
from pydantic_ai.exceptions import AgentRunError, ModelContextWindowExceededError, UserError
from pydantic_ai.messages import ModelMessage

from punie.adapters.pydantic_ai.failures import Reached, run_error
from punie.adapters.pydantic_ai.shortening import Cut, cut_resting, cut_running, shortened, tokens_of, written_out
from punie.adapters.pydantic_ai.streaming import StreamedModel, SummaryModel
from punie.domain.errors import EngineError, EngineErrorKind
from punie.domain.model.compaction import CompactionOrder, CompactionStatus
from punie.domain.model.summary import (
    INPUT_CHARS_PER_TOKEN,
    KEPT_SHARE,
    SUMMARY_CHARS,
    SUMMARY_LIMIT_S,
    SUMMARY_TOKENS,
    TELL_LIMIT_S,
    TRIES,
    USUAL_TOKENS,
    record_prompt,
    summary_instructions,
)
from punie.domain.model.text import encodable
from punie.domain.session.events import CompactionChanged


@define
class Compactor:
    """Shortens one history; lives as long as a turn, or as an order to compact.

    `shorter` is the history once it is another one; `gave_up` says that it failed, and is not tried again unasked.
    """

    model: StreamedModel
    reached: Reached
    above_tokens: int | None
    shorter: list[ModelMessage] | None = field(default=None, init=False)
    gave_up: bool = field(default=False, init=False)
    _count: int = field(default=0, init=False)

    async def where_needed(self, messages: Sequence[ModelMessage]) -> list[ModelMessage] | None:
        """The shorter history of a running turn, where this one is near the context's end; None where it stays."""
        if self.above_tokens is None or tokens_of(messages) <= self.above_tokens:
            return None
        return await self.unasked(messages, self.above_tokens)

    async def where_refused(self, messages: Sequence[ModelMessage]) -> list[ModelMessage] | None:
        """The shorter history of a running turn that the provider found too long: its context is smaller than that."""
        too_much = tokens_of(messages)
        return await self.unasked(messages, min(too_much, self.above_tokens or too_much))

    async def unasked(self, messages: Sequence[ModelMessage], too_much: int) -> list[ModelMessage] | None:
        """The shorter history of a running turn; None where that fails, which the events say, or nothing is gained."""
        cut = None if self.gave_up else cut_running(messages, too_much // KEPT_SHARE)
        if cut is None:
            return None
        self._count += 1
        order = CompactionOrder(f"{self.model.turn_id}-compaction-{self._count}")
        try:
            return await self._summarise(order, cut, too_much)
        except EngineError:
            self.gave_up = True
            return None

    async def ordered(self, order: CompactionOrder, messages: Sequence[ModelMessage]) -> list[ModelMessage] | None:
        """The shorter history of a session at rest; None where nothing is gained. Raises `EngineError`."""
        too_much = self.above_tokens or USUAL_TOKENS
        cut = cut_resting(messages, too_much // KEPT_SHARE)
        if cut is None:
            return None
        return await self._summarise(order, cut, too_much)

    async def _summarise(self, order: CompactionOrder, cut: Cut, too_much: int) -> list[ModelMessage]:
        """One request without tools; whoever listens is told how it goes, also where it is cancelled.

        Who is told that it is done finds the shorter history in its place.
        """
        emit = self.model.events.emit
        await emit(CompactionChanged(order.id, CompactionStatus.IN_PROGRESS))
        ended = CompactionChanged(order.id, CompactionStatus.CANCELLED)
        try:
            with anyio.fail_after(SUMMARY_LIMIT_S):
                summary = await self._summary(order, cut.old, int(too_much * INPUT_CHARS_PER_TOKEN))
            shorter = self.shorter = shortened(cut, summary)
            ended = CompactionChanged(order.id, CompactionStatus.COMPLETED, summary)
        except (AgentRunError, UserError, httpx2.HTTPError, TimeoutError) as error:
            failure = self._failure(error)
            ended = CompactionChanged(order.id, CompactionStatus.FAILED, error=failure.cause)
            raise failure from error
        finally:
            with anyio.move_on_after(TELL_LIMIT_S, shield=True):
                await emit(ended)
        return shorter

    def _failure(self, error: Exception) -> EngineError:
        if not isinstance(error, TimeoutError):
            return run_error(error, self.reached)
        cause = f"{self.reached.name} did not summarise the conversation within {SUMMARY_LIMIT_S:g} s."
        return EngineError(kind=EngineErrorKind.TIMEOUT.value, cause=cause, next_step="Try it again, or start anew.")

    async def _summary(self, order: CompactionOrder, old: Sequence[ModelMessage], limit_chars: int) -> str:
        for attempt in range(TRIES - 1):
            try:
                return await self._asked(order, written_out(old, limit_chars >> attempt))
            except ModelContextWindowExceededError:
                continue
        return await self._asked(order, written_out(old, limit_chars >> (TRIES - 1)))

    async def _asked(self, order: CompactionOrder, record: str) -> str:
        asking = Agent(name="punie-summary", output_type=str)
        result = await asking.run(
            encodable(record_prompt(record)),
            model=SummaryModel(self.model.wrapped, order.id, self.model.events),
            instructions=encodable(summary_instructions(order.keep_in_mind)),
            model_settings={"max_tokens": SUMMARY_TOKENS},
            infer_name=False,
        )
        await self.model.count(result.usage, result.usage.requests)
        return result.output[:SUMMARY_CHARS]
