"""The usage of a turn, and a history within the model's context: the model summarises what was said before."""

from __future__ import annotations

from typing import Generic

import anyio
from attrs import define, field

from punie.domain.errors import EngineError, EngineErrorKind
from punie.domain.model.compaction import (
    INPUT_CHARS_PER_TOKEN,
    KEPT_SHARE,
    SUMMARY_CHARS,
    SUMMARY_LIMIT_S,
    SUMMARY_TOKENS,
    TELL_LIMIT_S,
    TRIES,
    USUAL_TOKENS,
    CompactionOrder,
    CompactionStatus,
    Cut,
    away_before,
    cut_resting,
    cut_running,
    record_prompt,
    summary_instructions,
    written_out,
)
from punie.domain.model.provider import failure, unusable_answer
from punie.domain.session.events import CompactionChanged, CompactionDelta, ContextUsed, UsageChanged
from punie.domain.session.turn import Usage
from punie.ports.engine import EventSink, H, ModelLibrary, Upkeep


@define
class HistoryUpkeep(Upkeep[H], Generic[H]):
    """The upkeep of one history; lives as long as a turn, or as an order to compact, whose id is `id`.

    `above_tokens` is the size beyond which the history is too long; None where it may grow. `told` is the latest one
    with a summary, which the listener was told of. Results are put away without a word: nothing of the conversation is
    lost by it, and the model can get each again.
    """

    library: ModelLibrary[H]
    id: str
    events: EventSink
    above_tokens: int | None
    shorter: H | None = field(default=None, init=False)
    told: H | None = field(default=None, init=False)
    _gave_up: bool = field(default=False, init=False)
    _count: int = field(default=0, init=False)
    _total: Usage = field(factory=Usage, init=False)

    async def spent(self, usage: Usage, context_tokens: int = 0) -> None:
        """Add to the totals, and emit them."""
        self._total += usage
        await self.events.emit(UsageChanged(self._total))
        if context_tokens > 0:
            await self.events.emit(ContextUsed(context_tokens))

    async def where_needed(self, history: H) -> H | None:
        """The shorter history of a running turn: old results are put away, and near the context's end it is summarised.

        None where it stays.
        """
        away = self._without_old_results(history)
        if self.above_tokens is None or self.library.tokens(away or history) <= self.above_tokens:
            return away
        return await self._unasked(away or history, self.above_tokens) or away

    def _without_old_results(self, history: H) -> H | None:
        before = away_before(self.library.pieces(history))
        if before is None:
            return None
        self.shorter = self.library.with_results_away(history, before)
        return self.shorter

    async def where_refused(self, history: H) -> H | None:
        """The shorter history of a running turn that the provider found too long: its context is smaller than that."""
        too_much = self.library.tokens(history)
        return await self._unasked(history, min(too_much, self.above_tokens or too_much))

    async def ordered(self, order: CompactionOrder, history: H) -> H | None:
        """The shorter history of a session at rest; None where nothing is gained. Raises `EngineError`."""
        too_much = self.above_tokens or USUAL_TOKENS
        cut = cut_resting(self.library.pieces(history), too_much // KEPT_SHARE)
        return None if cut is None else await self._summarise(order, history, cut, too_much)

    async def _unasked(self, history: H, too_much: int) -> H | None:
        """None also where the summary fails, which the events say; then it is not tried again in this turn."""
        cut = None if self._gave_up else cut_running(self.library.pieces(history), too_much // KEPT_SHARE)
        if cut is None:
            return None
        self._count += 1
        order = CompactionOrder(f"{self.id}-compaction-{self._count}")
        try:
            return await self._summarise(order, history, cut, too_much)
        except EngineError:
            self._gave_up = True
            return None

    async def _summarise(self, order: CompactionOrder, history: H, cut: Cut, too_much: int) -> H:
        """One request without tools; the listener is told how it goes, also where it is cancelled.

        `shorter` is set before the listener is told that it is done.
        """
        emit = self.events.emit
        await emit(CompactionChanged(order.id, CompactionStatus.IN_PROGRESS))
        ended = CompactionChanged(order.id, CompactionStatus.CANCELLED)
        try:
            summary = await self._summary(order, history, cut.first, int(too_much * INPUT_CHARS_PER_TOKEN))
            shorter = self.shorter = self.told = self.library.shortened(history, cut.first, cut.prompt, summary)
            ended = CompactionChanged(order.id, CompactionStatus.COMPLETED, summary)
        except EngineError as error:
            ended = CompactionChanged(order.id, CompactionStatus.FAILED, error=error.cause)
            raise
        finally:
            with anyio.move_on_after(TELL_LIMIT_S, shield=True):
                await emit(ended)
        return shorter

    async def _summary(self, order: CompactionOrder, history: H, first: int, limit_chars: int) -> str:
        """The summary of the pieces before `first`. Raises `EngineError`."""
        old = self.library.pieces(history)[:first]
        try:
            with anyio.fail_after(SUMMARY_LIMIT_S):
                for attempt in range(TRIES - 1):
                    try:
                        return await self._asked(order, written_out(old, limit_chars >> attempt))
                    except EngineError as error:
                        if error.kind != EngineErrorKind.CONTEXT.value:
                            raise
                return await self._asked(order, written_out(old, limit_chars >> (TRIES - 1)))
        except TimeoutError as error:
            name = self.library.place.name
            cause = f"{name} did not summarise the conversation within {SUMMARY_LIMIT_S:g} s."
            raise failure(EngineErrorKind.TIMEOUT, cause, "Try it again, or start anew.") from error

    async def _asked(self, order: CompactionOrder, record: str) -> str:
        async def tell(piece: str) -> None:  # a part of the compaction, not of the conversation
            await self.events.emit(CompactionDelta(order.id, piece))

        library, instructions = self.library, summary_instructions(order.keep_in_mind)
        try:
            summary, used = await library.ask(
                record_prompt(record), instructions=instructions, max_tokens=SUMMARY_TOKENS, say=tell
            )
        except library.failures as error:
            raise library.explained(error) from error
        await self.spent(used)
        if not summary.strip():
            raise unusable_answer(library.place, "the summary is empty")
        return summary[:SUMMARY_CHARS]
