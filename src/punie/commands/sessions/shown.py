"""Stored sessions for people and programs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from attrs import define, field

from punie.adapters.console.output import table
from punie.commands.permissions.kept import moment
from punie.domain.session.events import CallFinished, ModeChanged, ModelChanged, TextDelta, ToolCallAnnounced, TurnEnded
from punie.domain.session.log import LoggedEvent, PromptAccepted, SessionSummary
from punie.domain.session.turn import StopReason
from punie.domain.tools.tool import ToolOutcome
from punie.domain.values.display import display_safe, one_line

SHORT_ID = 13
"""Characters of an id that are shown where they tell it from the others."""

_OUTCOMES: Mapping[ToolOutcome, str] = {
    ToolOutcome.SUCCEEDED: "done",
    ToolOutcome.FAILED: "failed",
    ToolOutcome.DENIED: "denied",
    ToolOutcome.CANCELLED: "cancelled",
}

_ENDINGS: Mapping[StopReason | None, str] = {
    None: "this turn failed",
    StopReason.CANCELLED: "this turn was cancelled",
    StopReason.MAX_TOKENS: "the model had no room for more",
    StopReason.MAX_TURN_REQUESTS: "the turn took too many requests",
    StopReason.REFUSAL: "the model refused",
}


def summary_object(summary: SessionSummary) -> dict[str, object]:
    """A session as programs read it."""
    return {
        "sessionId": summary.id,
        "cwd": summary.cwd,
        "title": summary.title,
        "updatedAt": moment(summary.updated_at),
        "turns": summary.turns,
        "additionalDirectories": list(summary.additional_directories),
    }


def sessions_text(sessions: Sequence[SessionSummary], *, with_directory: bool) -> str:
    """A line a session, the latest first."""
    shared = Counter(session.id[:SHORT_ID] for session in sessions)
    headers = ["ID", "CHANGED", "TURNS", *(["DIRECTORY"] if with_directory else []), "TITLE"]
    rows = [
        [
            one_line(session.id[:SHORT_ID] if shared[session.id[:SHORT_ID]] == 1 else session.id, 80),
            moment(session.updated_at)[:16].replace("T", " "),
            session.turns,
            *([one_line(session.cwd, 40)] if with_directory else []),
            one_line(session.title or "", 80),
        ]
        for session in sessions
    ]
    return table(headers, rows)


def heading_text(summary: SessionSummary) -> str:
    """What stands above a conversation."""
    turns = "1 turn" if summary.turns == 1 else f"{summary.turns} turns"
    title = one_line(summary.title or "A session without a title")
    return (
        f"{title}\n{one_line(summary.id)}, {turns}, {one_line(summary.cwd, 1_000)}, "
        f"last changed {moment(summary.updated_at)}\n"
    )


@define
class ConversationText:
    """A session's events as a person reads them; `take` gives the text of one, safe to show. For one log in order."""

    _titles: dict[str, str] = field(factory=dict[str, str], init=False)
    _line_open: bool = field(default=False, init=False)
    _message: str | None = field(default=None, init=False)
    _running: bool = field(default=False, init=False)

    def take(self, event: LoggedEvent) -> str:
        """What is written of that event: often nothing."""
        match event:
            case PromptAccepted(_, prompt):
                ended, self._running = self._left_open(), True
                said = "".join(f"> {line}\n" for line in display_safe(prompt.text).splitlines() or [""])
                return f"{ended}\n{said}\n"
            case TextDelta(text, message_id) if text:
                return self._piece(display_safe(text), message_id)
            case ToolCallAnnounced(call_id, tool, title):
                self._titles[call_id] = title or tool
                return ""
            case CallFinished():
                return self._call(event)
            case ModeChanged(mode):
                return self._line(f"(the mode is {mode.value} from here)")
            case ModelChanged(model):
                return self._line(f"(the model is {one_line(model)} from here)")
            case TurnEnded(reason):
                self._running = False
                ended = f"({_ENDINGS[reason]})" if reason in _ENDINGS else ""
                return self._unfinished() + (self._line(ended) if ended else self._end_line())
            case _:
                return ""

    def end(self) -> str:
        """What is written behind the last event."""
        return self._left_open()

    def _left_open(self) -> str:
        text = self._unfinished() + self._end_line()
        if self._running:
            text += "(this turn has not ended)\n"
        return text

    def _unfinished(self) -> str:
        titles, self._titles = self._titles, {}
        return "".join(self._line(f"- not finished: {one_line(title)}") for title in titles.values())

    def _call(self, event: CallFinished) -> str:
        title = one_line(self._titles.pop(event.call_id, event.tool))
        why = "" if event.outcome is ToolOutcome.SUCCEEDED else one_line(event.for_model.strip(), 100)
        return self._line(f"- {_OUTCOMES[event.outcome]}: {title}{f' ({why})' if why else ''}")

    def _piece(self, text: str, message_id: str | None) -> str:
        other = self._line_open and message_id != self._message
        start = self._end_line() if other else ""
        self._line_open, self._message = not text.endswith("\n"), message_id
        return start + text

    def _line(self, line: str) -> str:
        return f"{self._end_line()}{line}\n"

    def _end_line(self) -> str:
        line_open, self._line_open = self._line_open, False
        return "\n" if line_open else ""
