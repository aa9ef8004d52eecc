"""One conversation with the model: runs turns, and leaves a history that the next request can stand on."""

from __future__ import annotations

from attrs import define, evolve, field

from punie.api import CompactionOrder, ContextUsed, EventSink, StopReason, ToolDoor, Transcript, Turn
from punie_openai_agents.asking import Answer, Question, ask, left_over
from punie_openai_agents.compaction import Compactor
from punie_openai_agents.failures import FAILURES, is_too_long, run_error
from punie_openai_agents.items import dump, flat, parse, user_item
from punie_openai_agents.models import Kit
from punie_openai_agents.prompts import user_content
from punie_openai_agents.shortening import Counted, History, Running
from punie_openai_agents.tally import Tally
from punie_openai_agents.tools import Calls, Offered
from punie_openai_agents.transcripts import turns_of


@define
class Conversation:
    """Lives as long as its session; one turn at a time."""

    kit: Kit
    _history: History
    _offered: Offered = field(factory=Offered, init=False)
    _compactor: Compactor | None = field(default=None, init=False)

    @classmethod
    def of(cls, kit: Kit, snapshot: bytes | None, since: Transcript) -> Conversation:
        """A new one, or one that goes on. Raises `UnreadableSnapshotError`."""
        before = [] if snapshot is None else parse(snapshot)
        return cls(kit, History((*before, *turns_of(since))))

    def snapshot(self) -> bytes:
        """The turns so far: in a turn those before it, or what they were made shorter to together with it."""
        shorter = None if self._compactor is None else self._compactor.shorter
        return dump((self._history if shorter is None else shorter.over).turns)

    async def run(self, turn: Turn, tools: ToolDoor, events: EventSink) -> StopReason:
        """Run one turn; see the port `EngineSession`."""
        tally = Tally(events)
        compactor = self._compactor = Compactor(self.kit, turn.id, tally, turn.limits.compact_above_tokens)
        working = _Working(self.kit, turn, tools, tally, self._offered, compactor, self._history)
        refused = False
        try:
            reason = await working.work()
        except FAILURES as error:
            refused = True
            raise run_error(error, self.kit.place) from error
        else:
            refused = reason is StopReason.REFUSAL
            return reason
        finally:
            self._history = working.left(refused=refused)
            self._compactor = None

    async def compact(self, order: CompactionOrder, events: EventSink) -> bool:
        """Make the history shorter; see the port `EngineSession`."""
        compactor = self._compactor = Compactor(self.kit, order.id, Tally(events), order.above_tokens)
        try:
            shorter = await compactor.ordered(order, self._history)
        finally:
            self._compactor = None
        self._history = self._history if shorter is None else shorter
        return shorter is not None

    def forget(self) -> None:
        """Begin anew."""
        self._history = History()


@define(eq=False)
class _Working:
    """One turn at work. `_answer` is the one that `now` does not hold yet, `_calls` are its calls."""

    kit: Kit
    turn: Turn
    tools: ToolDoor
    tally: Tally
    offered: Offered
    compactor: Compactor
    history: History
    now: Running = field(init=False)
    _answer: Answer | None = field(default=None, init=False)
    _calls: Calls | None = field(default=None, init=False)

    def __attrs_post_init__(self) -> None:
        self.now = Running(self.history, [[user_item(user_content(self.turn.prompt))]])

    async def work(self) -> StopReason:
        """Ask and call until the model is done."""
        for number in range(1, self.turn.limits.max_requests + 1):
            self.now = await self.compactor.where_needed(self.now) or self.now
            answer = await self._asked(number)
            await self._count(answer)
            if answer.stop is not None:
                self._stop(answer)
                return answer.stop
            if not answer.calls:
                self._add()
                return StopReason.END_TURN
            self._calls = Calls(self.tools, self.offered)
            await self._calls.run(answer.calls)
            self._add()
        return StopReason.MAX_TURN_REQUESTS

    def left(self, *, refused: bool) -> History:
        """The history once the turn is over, however it ended: only now, as its tasks are done.

        What an answer that was broken off had said or done is part of it. A prompt that was refused before anything
        came of it is not: it would be refused again with every prompt that follows.
        """
        self._add()
        return self.now.history if refused and len(self.now.told) == 1 else self.now.over

    async def _asked(self, number: int) -> Answer:
        """The next answer. A request that was too long said nothing yet: it is made again where it can be shorter."""
        try:
            return await self._ask(number)
        except FAILURES as error:
            if not is_too_long(error) or (self._answer is not None and self._answer.text):
                raise
            shorter = await self.compactor.where_refused(self.now)
            if shorter is None:
                raise
            self.now = shorter
        return await self._ask(number)

    async def _ask(self, number: int) -> Answer:
        catalog = await self.tools.offered()
        instructions = "\n\n".join(text for text in (self.turn.instructions, catalog.notes) if text)
        items = flat([*self.now.history.turns, self.now.told])
        question = Question(instructions, items, self.offered.take(catalog), self.turn.effort)
        answer = self._answer = Answer()
        await ask(self.kit, question, answer, self.tally.events.emit, f"{self.turn.id}-{number}")
        return answer

    async def _count(self, answer: Answer) -> None:
        await self.tally.add(answer.usage)
        taken = answer.usage.input_tokens + answer.usage.output_tokens  # what was cached is among the input
        if taken > 0:
            self.now = evolve(self.now, counted=Counted(taken, len(self.now.told) + 1))
            await self.tally.events.emit(ContextUsed(taken))

    def _stop(self, answer: Answer) -> None:
        """Nothing of the answer is run. A refused one is forgotten; of one that was cut its text stays."""
        answer.calls.clear()
        answer.group.clear()
        if answer.stop is StopReason.REFUSAL:
            answer.text = ""

    def _add(self) -> None:
        """Add the answer to the turn: whole with the results that are there, or what it had said."""
        answer, calls = self._answer, self._calls
        self._answer = self._calls = None
        if answer is None:
            return
        results = [] if calls is None else calls.items(answer.calls)
        group = [*(answer.group or left_over(answer)), *results]
        if group:
            self.now = evolve(self.now, told=[*self.now.told, group])
