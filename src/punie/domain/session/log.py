"""A session's log: an append-only list of events, so that another process can continue the session.

The log is the truth; `SessionSummary` is an index made from it, and can be made again (`summarised`). One process at a
time may add to a log: its lease says which, and when that process is taken to be gone.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from attrs import evolve, frozen

from punie.domain.model.choice import Effort, ModelChoice
from punie.domain.permission.modes import Mode
from punie.domain.session.events import (
    CallFinished,
    CompactionChanged,
    ContextUsed,
    HistoryForgotten,
    ModeChanged,
    ModelChanged,
    PermissionAnswered,
    PermissionAsked,
    PlanChanged,
    RequestEnded,
    TextDelta,
    ThoughtDelta,
    TitleChanged,
    ToolCallAnnounced,
    ToolCallUpdated,
    TurnEnded,
    UsageChanged,
)
from punie.domain.values.content import Prompt
from punie.domain.values.display import one_line

LEASE_S = 60.0
"""How long a process of another machine is believed to live after it last said so."""

THIS_PROCESS = "this process"

HAS_BEGUN = "a session that has begun cannot become another one's copy"


@frozen
class ProcessIdentity:
    """A process, so that no later one of the same number is taken for it.

    `machine` names the numbering that `pid` belongs to: two containers of one host have one each. `started` says when
    it began, in whatever form the system tells that; empty where the system does not.
    """

    machine: str
    pid: int
    started: str = ""


@frozen
class Holder:
    """Whose a session is, and when that process last said that it lives (seconds since the epoch)."""

    process: ProcessIdentity
    renewed_at: float


def held_by(holder: Holder, asking: ProcessIdentity, *, lives: bool | None, now: float) -> str | None:
    """In words who keeps the session from `asking`; None where it is free.

    `lives` is what the asking machine knows of the holder; None where it cannot know.
    """
    if holder.process == asking:
        return THIS_PROCESS
    if lives is False or (lives is None and now - holder.renewed_at >= LEASE_S):
        return None
    if holder.process.machine == asking.machine:
        return f"process {holder.process.pid} of this machine"
    return f"a process of another machine ({holder.process.machine})"


TITLE_LIMIT = 80


@frozen
class SessionBegun:
    """The first event of every log: where the session works. `forked_from` is the session whose log it continues."""

    cwd: str
    additional_directories: tuple[str, ...] = ()
    forked_from: str | None = None


@frozen
class PromptAccepted:
    """A turn began: nothing of its work is older than this. `model` answers it, and thinks so hard."""

    turn_id: str
    prompt: Prompt
    model: str | None = None
    effort: Effort | None = None


@frozen
class PromptFilled:
    """What the model gets in place of the prompt that this turn began with, which was a command of the project."""

    prompt: Prompt


LoggedEvent: TypeAlias = (
    SessionBegun
    | PromptAccepted
    | PromptFilled
    | TextDelta
    | ThoughtDelta
    | ToolCallAnnounced
    | ToolCallUpdated
    | CallFinished
    | PermissionAsked
    | PermissionAnswered
    | RequestEnded
    | UsageChanged
    | ContextUsed
    | ModeChanged
    | ModelChanged
    | TitleChanged
    | PlanChanged
    | CompactionChanged
    | HistoryForgotten
    | TurnEnded
)


@frozen
class LogEntry:
    """One event in its place: `sequence` counts from 1 within the session, `at` is seconds since the epoch."""

    sequence: int
    at: float
    event: LoggedEvent


@frozen
class SessionSummary:
    """A session as lists show it; `updated_at` is seconds since the epoch, `last_sequence` that of its last entry."""

    id: str
    cwd: str
    additional_directories: tuple[str, ...] = ()
    title: str | None = None
    updated_at: float = 0.0
    turns: int = 0
    mode: Mode | None = None
    last_sequence: int = 0


@frozen
class EngineSnapshot:
    """An engine's own memory of a session, as far as the entry `sequence`; what came later is in the log alone.

    `engine` says whose it is: another engine cannot read it.
    """

    engine: str
    sequence: int
    state: bytes


@frozen
class SessionPage:
    """A part of the list of sessions, newest first; `next_cursor` is None on the last one."""

    sessions: tuple[SessionSummary, ...]
    next_cursor: str | None = None


def chosen(events: Iterable[LoggedEvent], before: ModelChoice | None = None) -> ModelChoice | None:
    """The model that a session was left with; None where its log does not say. From its last prompt on is enough."""
    choice = before
    for event in events:
        match event:
            case PromptAccepted(_, _, str() as model, effort) | ModelChanged(model, effort):
                choice = ModelChoice(model, effort)
            case _:
                pass
    return choice


def summarised(session_id: str, entries: Iterable[LogEntry], known: SessionSummary | None = None) -> SessionSummary:
    """The summary of a log, or of what was added to one whose summary so far is `known`."""
    summary = known or SessionSummary(session_id, "")
    for entry in entries:
        summary = evolve(_with(summary, entry.event), updated_at=entry.at, last_sequence=entry.sequence)
    return summary


def _with(summary: SessionSummary, event: LoggedEvent) -> SessionSummary:
    match event:
        case SessionBegun(cwd, directories):
            return evolve(summary, cwd=cwd, additional_directories=directories)
        case PromptAccepted(_, prompt):
            title = title_of(prompt) if summary.title is None else summary.title
            return evolve(summary, turns=summary.turns + 1, title=title)
        case TitleChanged(title):
            return evolve(summary, title=title)
        case ModeChanged(mode):
            return evolve(summary, mode=mode)
        case _:
            return summary


def title_of(prompt: Prompt) -> str | None:
    """A session's title, from its first prompt: its first line that says anything, cut; None where there is none."""
    said = next((line for line in prompt.text.splitlines() if line.strip()), "")
    return one_line(said.strip(), TITLE_LIMIT) or None
