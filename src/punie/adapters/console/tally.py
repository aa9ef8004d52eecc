"""The account of a run that front ends without a screen keep: titles of calls, denials, and the last word."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import define, field, frozen

from punie.domain.permission.policy import Verdict
from punie.domain.session.events import (
    CallFinished,
    PermissionAsked,
    PermissionSettled,
    SessionEvent,
    ToolCallAnnounced,
    ToolCallUpdated,
)
from punie.domain.tools.execution import CallStatus
from punie.domain.tools.tool import ToolOutcome

MOST_DENIALS = 100
"""Further denials are not kept."""


@frozen
class Denial:
    """A call that was denied: why, and the `--allow` rules that together would let it run, if any would."""

    tool: str
    title: str
    reason: str
    allow: tuple[str, ...] = ()


@define
class RunTally:
    """The sum of the events of a run; lives as long as the run.

    `denied_last`: a call was denied and none succeeded after it, which is exit code 3.
    """

    denied_last: bool = False
    denials: list[Denial] = field(factory=list[Denial], init=False)
    _titles: dict[str, str] = field(factory=dict[str, str], init=False)
    _asked: dict[str, str] = field(factory=dict[str, str], init=False)
    _denied: dict[str, Denial] = field(factory=dict[str, Denial], init=False)
    _finished: dict[str, CallFinished] = field(factory=dict[str, CallFinished], init=False)

    def take(self, event: SessionEvent) -> None:
        """Count one event."""
        match event:
            case ToolCallAnnounced():
                self._titles[event.call_id] = called(event)
            case PermissionAsked():
                self._asked[event.call_id] = event.reason
            case PermissionSettled(verdict=Verdict.DENY):
                self._deny(event)
            case CallFinished():
                self._finished[event.call_id] = event
            case ToolCallUpdated(status=CallStatus.COMPLETED):
                self.denied_last = False
            case _:
                pass

    def title(self, call_id: str) -> str:
        """The title of a call; empty where none was told."""
        return self._titles.get(call_id, "")

    def ended(self, call_id: str) -> tuple[str, Denial | None, ToolOutcome | None, str]:
        """The title of a call that has ended, its denial, its outcome and its text for the model; then forgotten."""
        finished, title = self._finished.pop(call_id, None), self._titles.pop(call_id, "")
        denial = self._denied.pop(call_id, None)
        self._asked.pop(call_id, None)
        if finished is None:
            return title, denial, None, ""
        return title, denial, finished.outcome, finished.for_model

    def _deny(self, event: PermissionSettled) -> None:
        self.denied_last = True
        asked = self._asked.get(event.call_id, "")
        reason = asked if asked and asked in event.reason else event.reason
        denial = Denial(event.tool, self.title(event.call_id) or event.tool, reason, event.allow)
        self._denied[event.call_id] = denial
        if len(self.denials) < MOST_DENIALS:
            self.denials.append(denial)


def called(event: ToolCallAnnounced) -> str:
    """The title of a call; of a command of several lines those lines, which a title has in one."""
    command = event.raw_input.get("command") if isinstance(event.raw_input, Mapping) else None
    several = isinstance(command, str) and "\n" in command.strip()
    return f"Running {command}" if several and event.title.startswith("Running ") else event.title
