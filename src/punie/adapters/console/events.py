"""Session events for a terminal, or for a program that reads JSON lines."""

from __future__ import annotations

import json
from collections.abc import Callable

from attrs import define, field

from punie.adapters.console.output import Pipe, piped
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
from punie.domain.values.display import display_safe
from punie.ports.engine import EventSink

EncodeUpdate = Callable[[SessionEvent], "dict[str, object] | None"]


@define
class DenialTally:
    """Whether a call was denied with none that succeeded after it: what exit code 3 says. Lives as long as a run."""

    denied_last: bool = False

    def take(self, event: SessionEvent) -> None:
        """Count one event."""
        if isinstance(event, PermissionSettled) and event.verdict is Verdict.DENY:
            self.denied_last = True
        elif isinstance(event, ToolCallUpdated) and event.status is CallStatus.COMPLETED:
            self.denied_last = False


@define
class TextSink(EventSink):
    """The answer on `out`, what the tools do on `notes`; both display-safe."""

    out: Pipe = field(converter=piped)
    notes: Pipe = field(converter=piped)
    tally: DenialTally
    _titles: dict[str, str] = field(factory=dict, init=False)
    _at_line_start: bool = field(default=True, init=False)

    async def emit(self, event: SessionEvent) -> None:
        self.tally.take(event)
        match event:
            case TextDelta(text) if text:
                self.out.write(display_safe(text))
                self._at_line_start = text.endswith("\n")
            case ToolCallAnnounced():
                self._titles[event.call_id] = event.title
            case ToolCallUpdated(call_id, status) if status is not None and status.terminal:
                self._note(f"{'done' if status is CallStatus.COMPLETED else 'failed'}: {self._titles.pop(call_id, '')}")
            case TurnEnded():
                self._end_line()
            case _:
                pass

    def _note(self, line: str) -> None:
        self._end_line()
        self.notes.write(f"- {display_safe(line)}\n")

    def _end_line(self) -> None:
        if not self._at_line_start:
            self.out.write("\n")
            self._at_line_start = True


@define
class JsonLinesSink(EventSink):
    """Each event that a program may want as one line of JSON."""

    out: Pipe = field(converter=piped)
    encode: EncodeUpdate
    tally: DenialTally

    async def emit(self, event: SessionEvent) -> None:
        self.tally.take(event)
        if isinstance(event, PermissionSettled):
            verdict = event.verdict.value
            self.line({"type": "permission", "tool": event.tool, "verdict": verdict, "reason": event.reason})
            return
        update = self.encode(event)
        if update is not None:
            self.line({"type": "update", "update": update})

    def line(self, value: dict[str, object]) -> None:
        """Write one line, at once."""
        self.out.write(json.dumps(value) + "\n")
