"""Questions of permission and session events at a terminal, in a pipe, or with answers written down beforehand."""

from __future__ import annotations

import difflib
import json
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import TextIO

import anyio
import anyio.lowlevel
import anyio.to_thread
from attrs import define, field, frozen

from punie.domain.permission.flow import (
    Dismissed,
    PermissionOutcome,
    PermissionQuestion,
    Selected,
    question_lines,
)
from punie.domain.permission.policy import Verdict
from punie.domain.session.events import (
    PermissionSettled,
    SessionEvent,
    TextDelta,
    ToolCallAnnounced,
    ToolCallUpdated,
    TurnEnded,
)
from punie.domain.tools.execution import CallStatus
from punie.domain.tools.tool import DELEGATE
from punie.domain.values.content import Diff, Text
from punie.domain.values.display import display_exact, display_safe, one_line
from punie.mechanics.questions import CHOICES_HINT, answer_later, asking, choices
from punie.ports.engine import EventSink
from punie.ports.permission import PermissionBroker

SHOWN_DIFF_LINES = 60


@frozen
class HeadlessBroker(PermissionBroker):
    """Denies every question, for runs without a person to ask."""

    async def ask(self, question: PermissionQuestion) -> PermissionOutcome:
        return Dismissed(f"nobody is there to ask ({question.reason})")


@frozen
class ConsoleBroker(PermissionBroker):
    """Asks the person at the terminal, one question at a time; Enter, and the end of the input, reject.

    `read_line` blocks and is called in a thread. A line that means nothing is asked again.
    """

    read_line: Callable[[], str]
    out: TextIO = field(factory=lambda: sys.stderr)
    _turn: anyio.Lock = field(factory=anyio.Lock, init=False)

    def asks(self) -> bool:
        """Whether a question is open at the terminal."""
        return self._turn.locked()

    async def ask(self, question: PermissionQuestion) -> PermissionOutcome:
        options = question.options
        prompt, places = choices([(display_exact(option.name), option.kind.allows) for option in options])
        answers: dict[str, PermissionOutcome] = {word: Selected(options[at].id) for word, at in places.items()}
        answers[""] = refused = Dismissed("the user did not allow it")
        whole = "\n".join(_shown(question)) + "\n"
        say = partial(print, end="", file=self.out, flush=True)
        async with self._turn:
            asked = asking(say, whole, f"  {prompt}", answers, refused, CHOICES_HINT)
            return await answer_later(asked, partial(anyio.to_thread.run_sync, self.read_line, abandon_on_cancel=True))


def _shown(question: PermissionQuestion) -> Iterator[str]:
    yield ""
    first, *more = display_exact(question.title).split("\n")
    yield f"? {first}"
    for line in more:
        yield f"  | {line}"  # a line of the title must not look like another question
    for line in question_lines(question):
        yield f"  {line}"
    for diff in question.diffs:
        yield from _diff_lines(diff)


def _diff_lines(diff: Diff) -> Iterator[str]:
    path = display_exact(diff.path)
    lines = list(
        difflib.unified_diff((diff.old_text or "").splitlines(), diff.new_text.splitlines(), path, path, lineterm="")
    )
    if not lines:
        yield f"  {path}: no line of it changes"
    for line in lines[:SHOWN_DIFF_LINES]:
        yield f"  {display_exact(line)}"
    if len(lines) > SHOWN_DIFF_LINES:
        yield f"  ... {len(lines) - SHOWN_DIFF_LINES} more lines"


DELEGATE_CHARS = 50
EncodeUpdate = Callable[[SessionEvent], "dict[str, object] | None"]


@define
class DenialTally:
    """Whether a call was denied and none succeeded after it, which is exit code 3. Lives as long as a run."""

    denied_last: bool = False

    def take(self, event: SessionEvent) -> None:
        """Count one event."""
        if isinstance(event, PermissionSettled) and event.verdict is Verdict.DENY:
            self.denied_last = True
        elif isinstance(event, ToolCallUpdated) and event.status is CallStatus.COMPLETED:
            self.denied_last = False


@define
class TextSink(EventSink):
    """Writes the answer to `out`, and the outcome of each call and the steps of delegates to `notes`, display-safe.

    Notes wait while a question is open at the terminal, as `asks` says.
    """

    out: TextIO
    notes: TextIO
    tally: DenialTally
    asks: Callable[[], bool] = bool
    _kept: list[str] = field(factory=list[str], init=False)
    _titles: dict[str, str] = field(factory=dict, init=False)
    _delegates: dict[str, str] = field(factory=dict[str, str], init=False)
    _at_line_start: bool = field(default=True, init=False)

    async def emit(self, event: SessionEvent) -> None:
        self.tally.take(event)
        match event:
            case TextDelta(text) if text:
                self._write_notes()
                self.out.write(display_safe(text))
                self._at_line_start = text.endswith("\n")
            case ToolCallAnnounced():
                self._titles[event.call_id] = event.title
                if event.tool == DELEGATE:
                    self._delegates[event.call_id] = one_line(event.title, DELEGATE_CHARS)
            case ToolCallUpdated(call_id, None, (Text(step), *_)) if call_id in self._delegates:
                self._note(f"{self._delegates[call_id]}: {step}")
            case ToolCallUpdated(call_id, status) if status is not None and status.terminal:
                self._note(f"{'done' if status is CallStatus.COMPLETED else 'failed'}: {self._titles.pop(call_id, '')}")
            case TurnEnded():
                self._write_notes()
                self._end_line()
            case _:
                pass

    def _note(self, line: str) -> None:
        self._kept.append(line)
        if not self.asks():
            self._write_notes()

    def _write_notes(self) -> None:
        if self._kept:
            self._end_line()
            self.notes.write("".join(f"- {display_safe(line)}\n" for line in self._kept))
            self._kept.clear()

    def _end_line(self) -> None:
        if not self._at_line_start:
            self.out.write("\n")
            self._at_line_start = True


@define
class JsonLinesSink(EventSink):
    """Writes permission decisions, and the updates that `encode` makes of events, as lines of JSON."""

    out: TextIO
    encode: EncodeUpdate
    tally: DenialTally

    async def emit(self, event: SessionEvent) -> None:
        self.tally.take(event)
        if isinstance(event, PermissionSettled):
            verdict, reason = event.verdict.value, display_exact(event.reason)
            self.line({"type": "permission", "tool": event.tool, "verdict": verdict, "reason": reason})
            return
        update = self.encode(event)
        if update is not None:
            self.line({"type": "update", "update": update})

    def line(self, value: dict[str, object]) -> None:
        """Write one line, at once."""
        self.out.write(json.dumps(value) + "\n")


@define(eq=False)
class RecordedBroker(PermissionBroker):
    """Gives the answers in their order, an option's id or None for no answer; lives as long as the test.

    A question beyond the last answer is dismissed, so that nothing runs which the test did not expect. `questions` are
    all that were asked.
    """

    answers: Iterable[str | None] = ()
    questions: list[PermissionQuestion] = field(factory=list[PermissionQuestion], init=False)
    _left: deque[str | anyio.Event | None] = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._left = deque(self.answers)

    @property
    def unused(self) -> int:
        """The number of answers that no question took."""
        return len(self._left)

    def add(self, answer: str | None) -> None:
        """Add one more answer, behind the others."""
        self._left.append(answer)

    def add_silence(self) -> anyio.Event:
        """Leave one question without an answer until its call is given up; the event is set once it is asked."""
        put = anyio.Event()
        self._left.append(put)
        return put

    async def ask(self, question: PermissionQuestion) -> PermissionOutcome:
        self.questions.append(question)
        answer = self._left.popleft() if self._left else None
        await anyio.lowlevel.checkpoint()
        if isinstance(answer, str):
            return Selected(answer)
        if answer is not None:
            answer.set()
            await anyio.sleep_forever()
        return Dismissed("no answer was recorded for it")
