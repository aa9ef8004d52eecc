"""The events of a session as text for a person, or as JSON lines for a program."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TextIO

from attrs import define, field

from punie.adapters.console.progress import ProgressLine
from punie.adapters.console.tally import RunTally, called, end_line, short_title
from punie.domain.session.events import (
    NoticeGiven,
    NoticeSeverity,
    PermissionAsked,
    PermissionSettled,
    SessionEvent,
    TextDelta,
    ThoughtDelta,
    ToolCallAnnounced,
    ToolCallUpdated,
    TurnEnded,
)
from punie.domain.tools.execution import CallStatus
from punie.domain.tools.tool import DELEGATE
from punie.domain.values.content import Text
from punie.domain.values.display import display_exact, display_safe, one_line
from punie.ports.engine import EventSink

DELEGATE_CHARS = 50
NOTICE_CHARS = 800
EncodeUpdate = Callable[[SessionEvent], "dict[str, object] | None"]


@define
class TextSink(EventSink):
    """Writes the answer to `out`; the end of each call, steps of delegates and notices to `notes`, display-safe.

    Notes wait while a question is open at the terminal, as `asks` says. `progress` is a line on `notes`, if there is
    one.
    """

    out: TextIO
    notes: TextIO
    tally: RunTally = field(factory=RunTally)
    asks: Callable[[], bool] = bool
    progress: ProgressLine | None = None
    _kept: list[str] = field(factory=list[str], init=False)
    _delegates: dict[str, str] = field(factory=dict[str, str], init=False)
    _at_line_start: bool = field(default=True, init=False)

    def __attrs_post_init__(self) -> None:
        if self.progress is not None:
            self.progress.free = lambda: self._at_line_start and not self.asks()

    async def emit(self, event: SessionEvent) -> None:
        self.tally.take(event)
        if self.progress is not None:
            self._follow(self.progress, event)
        match event:
            case TextDelta(text) if text:
                self._write_notes()
                self.out.write(display_safe(text))
                self._at_line_start = text.endswith("\n")
            case ToolCallAnnounced(tool=tool) if tool == DELEGATE:
                self._delegates[event.call_id] = one_line(event.title, DELEGATE_CHARS)
            case ToolCallUpdated(call_id, None, (Text(step), *_)) if call_id in self._delegates:
                self._note(f"- {self._delegates[call_id]}: {step}")
            case ToolCallUpdated(call_id, status) if status is not None and status.terminal:
                title, denial, outcome, told = self.tally.ended(call_id)
                self._note(f"- {end_line(title, event, denial, outcome, told)}")
            case NoticeGiven(severity, title, more):
                mark = "-" if severity is NoticeSeverity.INFO else "!"
                self._note(f"{mark} {one_line(': '.join(filter(None, (title, more))), NOTICE_CHARS)}")
            case TurnEnded() | PermissionAsked():  # a question ends with the line that a person types
                self._write_notes()
                self._end_line()
            case _:
                pass

    def _follow(self, progress: ProgressLine, event: SessionEvent) -> None:
        """Let the line say what is waited for after that event."""
        match event:
            case ToolCallAnnounced():
                progress.begin(event.call_id, short_title(called(event)))
                if progress.watched:
                    self._end_line()  # the line of the answer, which is over, makes room
            case ToolCallUpdated(call_id, status) if status is not None and status.terminal:
                progress.end(call_id)
            case TextDelta() | NoticeGiven() | PermissionAsked() | TurnEnded() | ThoughtDelta():
                progress.heard(thinks=isinstance(event, ThoughtDelta))
            case ToolCallUpdated():
                progress.clear()
            case _:
                pass

    def _note(self, line: str) -> None:
        self._kept.append(line)
        if not self.asks():
            self._write_notes()

    def _write_notes(self) -> None:
        if self._kept:
            self._end_line()
            self.notes.write("".join(f"{display_safe(line)}\n" for line in self._kept))
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
    tally: RunTally

    async def emit(self, event: SessionEvent) -> None:
        self.tally.take(event)
        if isinstance(event, ToolCallUpdated) and event.status in {CallStatus.COMPLETED, CallStatus.FAILED}:
            self.tally.ended(event.call_id)
        if isinstance(event, PermissionSettled):
            verdict, reason = event.verdict.value, display_exact(event.reason)
            allow = {"allow": list(event.allow)} if event.allow else {}
            self.line({"type": "permission", "tool": event.tool, "verdict": verdict, "reason": reason, **allow})
            return
        update = self.encode(event)
        if update is not None:
            self.line({"type": "update", "update": update})

    def line(self, value: dict[str, object]) -> None:
        """Write one line, at once."""
        self.out.write(json.dumps(value) + "\n")
