"""The model summarises what was said before, and the history goes on from that; unasked where it grows too long."""

from __future__ import annotations

from collections.abc import Sequence

import anyio
from agents.exceptions import ModelBehaviorError
from attrs import define, field

from punie.api import (
    INPUT_CHARS_PER_TOKEN,
    KEPT_SHARE,
    SUMMARY_CHARS,
    SUMMARY_LIMIT_S,
    SUMMARY_TOKENS,
    TELL_LIMIT_S,
    TRIES,
    USUAL_TOKENS,
    CompactionChanged,
    CompactionDelta,
    CompactionOrder,
    CompactionStatus,
    EngineError,
    EngineErrorKind,
    TextDelta,
    ThoughtDelta,
    encodable,
    failure,
    record_prompt,
    summary_instructions,
)
from punie_openai_agents.asking import Answer, Question, ask
from punie_openai_agents.failures import FAILURES, is_too_long, run_error
from punie_openai_agents.items import Told, user_item
from punie_openai_agents.models import Kit
from punie_openai_agents.shortening import Cut, History, Running, cut_resting, cut_running, shortened, written_out
from punie_openai_agents.tally import Tally


@define
class Compactor:
    """Shortens one history; lives as long as a turn, or as an order to compact.

    `shorter` is the history once it is another one; `gave_up` says that it failed, and is not tried again unasked.
    """

    kit: Kit
    turn_id: str
    tally: Tally
    above_tokens: int | None
    shorter: Running | None = field(default=None, init=False)
    gave_up: bool = field(default=False, init=False)
    _count: int = field(default=0, init=False)

    async def where_needed(self, now: Running) -> Running | None:
        """The shorter form of a running turn, where it is near the context's end; None where it stays."""
        if self.above_tokens is None or now.tokens <= self.above_tokens:
            return None
        return await self._unasked(now, self.above_tokens)

    async def where_refused(self, now: Running) -> Running | None:
        """The shorter form of a running turn that the provider found too long: its context is smaller than that."""
        return await self._unasked(now, min(now.tokens, self.above_tokens or now.tokens))

    async def ordered(self, order: CompactionOrder, history: History) -> History | None:
        """The shorter history of a session at rest; None where nothing is gained. Raises `EngineError`."""
        too_much = self.above_tokens or USUAL_TOKENS
        cut = cut_resting(history.turns, too_much // KEPT_SHARE)
        return None if cut is None else (await self._summarise(order, cut, too_much)).history

    async def _unasked(self, now: Running, too_much: int) -> Running | None:
        """None where it fails, which the events say, or where nothing is gained."""
        cut = None if self.gave_up else cut_running(now, too_much // KEPT_SHARE)
        if cut is None:
            return None
        self._count += 1
        order = CompactionOrder(f"{self.turn_id}-compaction-{self._count}")
        try:
            return await self._summarise(order, cut, too_much)
        except EngineError:
            self.gave_up = True
            return None

    async def _summarise(self, order: CompactionOrder, cut: Cut, too_much: int) -> Running:
        """One request without tools; whoever listens is told how it goes, also where it is cancelled.

        Who is told that it is done finds the shorter history in its place.
        """
        emit = self.tally.events.emit
        await emit(CompactionChanged(order.id, CompactionStatus.IN_PROGRESS))
        ended = CompactionChanged(order.id, CompactionStatus.CANCELLED)
        try:
            with anyio.fail_after(SUMMARY_LIMIT_S):
                summary = await self._summary(order, cut.old, int(too_much * INPUT_CHARS_PER_TOKEN))
            shorter = self.shorter = shortened(cut, summary)
            ended = CompactionChanged(order.id, CompactionStatus.COMPLETED, summary)
        except (*FAILURES, TimeoutError) as error:
            why = self._failure(error)
            ended = CompactionChanged(order.id, CompactionStatus.FAILED, error=why.cause)
            raise why from error
        finally:
            with anyio.move_on_after(TELL_LIMIT_S, shield=True):
                await emit(ended)
        return shorter

    def _failure(self, error: Exception) -> EngineError:
        if not isinstance(error, TimeoutError):
            return run_error(error, self.kit.place)
        return failure(
            EngineErrorKind.TIMEOUT,
            f"{self.kit.place.name} did not summarise the conversation within {SUMMARY_LIMIT_S:g} s.",
            "Try it again, or start anew.",
        )

    async def _summary(self, order: CompactionOrder, old: Sequence[Told], limit_chars: int) -> str:
        for attempt in range(TRIES - 1):
            try:
                return await self._asked(order, written_out(old, limit_chars >> attempt))
            except FAILURES as error:
                if not is_too_long(error):
                    raise
        return await self._asked(order, written_out(old, limit_chars >> (TRIES - 1)))

    async def _asked(self, order: CompactionOrder, record: str) -> str:
        answer = Answer()
        instructions = summary_instructions(order.keep_in_mind)
        question = Question(instructions, [user_item(encodable(record_prompt(record)))], max_tokens=SUMMARY_TOKENS)

        async def tell(piece: TextDelta | ThoughtDelta) -> None:
            if isinstance(piece, TextDelta):  # it is the compaction's, and no part of the conversation
                await self.tally.events.emit(CompactionDelta(order.id, piece.text))

        await ask(self.kit, question, answer, tell, order.id)
        await self.tally.add(answer.usage)
        if not answer.text.strip():
            raise ModelBehaviorError("the summary is empty")
        return answer.text[:SUMMARY_CHARS]
