"""The events of a session on the screen of `punie chat`."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol

import anyio.lowlevel
from attrs import define, field

from punie.adapters.console.chat.blocks import Blocks
from punie.adapters.console.chat.cards import TITLE_CHARS, Card, EndedCards, folded, opened
from punie.adapters.console.chat.painting import Paint
from punie.domain.model.compaction import CompactionStatus
from punie.domain.permission.rules import Verdict
from punie.domain.session.events import (
    CommandsChanged,
    CompactionChanged,
    ContextUsed,
    ModeChanged,
    ModelChanged,
    NoticeGiven,
    NoticeSeverity,
    PermissionSettled,
    PlanChanged,
    SessionEvent,
    TextDelta,
    ThoughtDelta,
    ToolCallAnnounced,
    ToolCallUpdated,
    TurnEnded,
)
from punie.domain.session.prompt_files import CommandInfo
from punie.domain.session.turn import Plan, PlanStep, StepStatus, StopReason
from punie.domain.tools.execution import CallStatus
from punie.domain.values.display import display_output, one_line
from punie.ports.engine import EventSink

THOUGHT_LINES = 3


class Page(Protocol):
    """The part of a screen that events are shown on."""

    def print(self, text: str) -> None:
        """Print a text for good."""

    def read(self, text: str) -> None:
        """Let the person read a long text apart from the others."""

    def show(self, live: str) -> None:
        """Show the end of an unfinished text; empty shows none."""

    def work(self, busy: Callable[[], str]) -> None:
        """Show what is being done."""

    def refresh(self) -> None:
        """Show the present status."""


@define(eq=False)
class Facts:
    """The line below the prompt: model, mode, context, cost and session, as they are now."""

    session: str = ""
    model: str = ""
    mode: str = ""
    used_tokens: int = 0
    size_tokens: int | None = None
    cost_usd: float | None = None

    def line(self, columns: int) -> str:
        """The facts for so many columns; those that matter least are left out first."""
        used = f"{self.used_tokens:,} tokens" if self.used_tokens else ""
        if self.size_tokens and self.used_tokens:
            used = f"context {self.used_tokens / self.size_tokens:.0%}"
        cost = "" if self.cost_usd is None else f"{self.cost_usd:.4f} USD"
        ranked = [self.mode, self.model, used, cost, self.session]
        while ranked and len(" | ".join(filter(None, ranked))) >= columns:
            ranked.pop()
        return " | ".join(filter(None, ranked)) or self.mode[: max(0, columns - 1)]


@define(eq=False)
class ChatSink(EventSink):
    """Shows a session's events on a page; lives as long as the session.

    Paths below `cwd` are shown relative. `commands` are those that a person may type, as they are now. `asked` names
    the calls whose changes were shown with a question.
    """

    page: Page
    paint: Paint
    facts: Facts
    cwd: str = ""
    now_s: Callable[[], float] = time.monotonic
    commands: tuple[CommandInfo, ...] = ()
    asked: set[str] = field(factory=set[str], init=False)
    _cards: dict[str, Card] = field(factory=dict[str, Card], init=False)
    _ended: EndedCards = field(factory=EndedCards, init=False)
    _text: Blocks = field(factory=Blocks, init=False)
    _message: str | None = field(default=None, init=False)
    _thought: str = field(default="", init=False)
    _plan: Plan = field(default=(), init=False)
    _after_text: bool = field(default=False, init=False)
    _spaced: bool = field(default=True, init=False)
    _since_s: float | None = field(default=None, init=False)
    _doing: str = field(default="", init=False)

    # ------------------------------------------------------------ what a conversation does

    def begin(self) -> None:
        """A prompt was sent: time runs."""
        self._since_s, self._doing = self.now_s(), "waiting for the model"
        self.page.work(self.busy)

    def stopping(self) -> None:
        """The turn was asked to stop."""
        self._doing = "stopping"

    def say(self, text: str, *, apart: bool = False) -> None:
        """Print a text of the conversation's own behind what came before, `apart` with an empty line between them."""
        self._end_text()
        if apart:
            self._space()
        self._put(text)

    def apart(self) -> None:
        """Print an empty line above a text of someone else, unless there is one."""
        self._end_text()
        self._space()
        self._spaced = False

    def open(self, number: int | None = None) -> bool:
        """Show the whole content of an ended call, by default the last one; False where there is none."""
        card = self._ended.card(number)
        if card is None:
            return False
        if card.long:
            self.page.read(card.whole())
        else:
            self.say(opened(card, self.paint))
        return True

    def busy(self) -> str:
        """The present work and its time; empty while there is none."""
        running = [card for card in self._cards.values() if card.running]
        if running:
            more = f" (and {len(running) - 1} more)" if len(running) > 1 else ""
            return f"{one_line(running[0].title, TITLE_CHARS)} {self._elapsed(running[0].started_s)}{more}"
        return "" if self._since_s is None else f"{self._doing} {self._elapsed(self._since_s)}"

    # ------------------------------------------------------------ events

    async def emit(self, event: SessionEvent) -> None:
        match event:
            case TextDelta(text, message_id):
                self._write(text, message_id)
            case ThoughtDelta(text):
                self._think(text)
            case ToolCallAnnounced() | ToolCallUpdated() | PermissionSettled():
                self._call(event)
            case PlanChanged(plan):
                self._show_plan(plan)
            case NoticeGiven():
                self._notice(event)
            case CompactionChanged():
                self._compaction(event)
            case TurnEnded():
                self._end(event)
            case _:
                self._learn(event)
        await anyio.lowlevel.checkpoint()  # the screen is drawn between two events

    def _learn(self, event: SessionEvent) -> None:
        match event:
            case ModelChanged(model):
                self.facts.model = model
            case ModeChanged(mode):
                self.facts.mode = mode.value
            case ContextUsed(used, size, cost):
                self.facts.used_tokens, self.facts.size_tokens = used, size or self.facts.size_tokens
                self.facts.cost_usd = self.facts.cost_usd if cost is None else cost
            case CommandsChanged(commands):
                self.commands = commands
            case _:
                return
        self.page.refresh()

    def _put(self, text: str) -> None:
        self.page.print(text)
        self._spaced = False

    def _space(self) -> None:
        """Print an empty line, unless there is one."""
        if not self._spaced:
            self.page.print("\n")
            self._spaced = True

    # ------------------------------------------------------------ texts

    def _write(self, text: str, message_id: str | None) -> None:
        self._end_thought()
        if message_id != self._message:
            self._end_text()
            self._message = message_id
        self._doing = "writing"
        for block in self._text.feed(text):
            self._block(self.paint.block(block))
        self.page.show(display_output(self._text.rest).rstrip("\n"))

    def _block(self, shown: str) -> None:
        self.page.show("")
        if shown:
            self._space()
            self._put(shown)
            self._after_text = True

    def _end_text(self) -> None:
        self._end_thought()
        for block in self._text.end():
            self._block(self.paint.block(block))
        self.page.show("")
        if self._after_text:
            self._space()
            self._after_text = False

    def _think(self, text: str) -> None:
        if not self._thought:
            self._end_text()
        self._doing = "thinking"
        self._thought = f"{self._thought}{text}"[-20_000:]
        self.page.show(display_output(self._thought).rstrip("\n"))

    def _end_thought(self) -> None:
        """Leave the end of a thought, dim."""
        lines = [line for line in self._thought.split("\n") if line.strip()]
        self._thought = ""
        if lines:
            self.page.show("")
            more = [f"({len(lines) - THOUGHT_LINES} more lines of thought)"] if len(lines) > THOUGHT_LINES else []
            self._put(self.paint.lines([*more, *lines[-THOUGHT_LINES:]], "dim italic", indent=2))

    # ------------------------------------------------------------ calls

    def _call(self, event: ToolCallAnnounced | ToolCallUpdated | PermissionSettled) -> None:
        match event:
            case ToolCallAnnounced():
                self._end_text()
                self._cards[event.call_id] = Card(event.title, event.kind, self.now_s(), event.quiet, self.cwd)
            case PermissionSettled(call_id, _, verdict, reason):
                if verdict is Verdict.DENY and call_id in self._cards:
                    self._cards[call_id].denied = reason
            case ToolCallUpdated(call_id) if call_id in self._cards:
                self._update(self._cards[call_id], event)
            case _:
                pass

    def _update(self, card: Card, event: ToolCallUpdated) -> None:
        card.content = card.content if event.content is None else event.content
        if event.status is CallStatus.IN_PROGRESS:
            card.running, card.started_s = True, self.now_s()
        elif event.status is not None and event.status.terminal:
            del self._cards[event.call_id]
            self._since_s, self._doing = self.now_s(), "waiting for the model"
            if not card.quiet or event.status is CallStatus.FAILED:
                self._end_card(card, event.status is CallStatus.COMPLETED, shown=event.call_id in self.asked)
            self.asked.discard(event.call_id)

    def _end_card(self, card: Card, good: bool, *, shown: bool) -> None:
        self._end_text()
        self._ended.add(card)
        elapsed = f"  {self._elapsed(card.started_s)}" if card.running else ""
        head = f"{self.paint.mark(good)} {one_line(card.title, TITLE_CHARS)}"
        rest = f"{elapsed}  [{card.number}]"
        self._put(self.paint.line(head, "green" if good else "red", rest))
        for text in folded(card, self.paint, good=good, shown=shown):
            self._put(text)

    # ------------------------------------------------------------ beside the conversation

    def _show_plan(self, plan: Plan) -> None:
        words = [step.content for step in plan]
        known, self._plan = [step.content for step in self._plan] == words, plan
        self._end_text()
        if known and plan:
            done = sum(step.status is StepStatus.COMPLETED for step in plan)
            now = next((step.content for step in plan if step.status is StepStatus.IN_PROGRESS), "")
            self._put(self.paint.line(f"Plan: {done} of {len(plan)} done", "dim", f"  {one_line(now)}"))
        elif plan:
            self._put(self.paint.lines(["Plan:", *map(_step, plan)]))

    def _notice(self, event: NoticeGiven) -> None:
        self._end_text()
        colour = {NoticeSeverity.ERROR: "red", NoticeSeverity.WARNING: "yellow"}.get(event.severity, "cyan")
        self._put(self.paint.line(f"! {event.title}", colour))
        if event.description:
            self._put(self.paint.lines([event.description], indent=2))

    def _compaction(self, event: CompactionChanged) -> None:
        self._end_text()
        if event.status is CompactionStatus.COMPLETED:
            self._put(self.paint.line("The conversation was summarised for the model.", "dim"))
        elif event.error is not None:
            self._put(self.paint.line(f"The conversation could not be summarised: {event.error}", "yellow"))
        else:
            self._doing = "summarising the conversation"

    def _end(self, event: TurnEnded) -> None:
        self._end_text()
        self._cards.clear()
        self._message = self._since_s = None
        self.page.work(self.busy)
        if event.stop_reason not in {None, StopReason.END_TURN}:
            said = "Stopped." if event.stop_reason is StopReason.CANCELLED else f"The turn ended: {event.stop_reason}."
            self._put(self.paint.line(said, "yellow"))

    def _elapsed(self, since_s: float) -> str:
        elapsed_s = max(0.0, self.now_s() - since_s)
        return f"{elapsed_s:.0f} s" if elapsed_s < 60 else f"{elapsed_s // 60:.0f} min {elapsed_s % 60:.0f} s"


def _step(step: PlanStep) -> str:
    marks = {StepStatus.COMPLETED: "[x]", StepStatus.IN_PROGRESS: "[>]"}
    return f"  {marks.get(step.status, '[ ]')} {one_line(step.content)}"
