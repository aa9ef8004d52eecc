"""What happened between the reference IDE and an agent, in the order it happened.

Frozen values, kept for as long as the session's record of them. Status, kind and stop reason stay the words of the
wire, so that an agent of another make, or a newer protocol, is recorded as it spoke.
"""

from __future__ import annotations

from typing import TypeAlias

from attrs import field, frozen

from punie.api import JsonValue, ResultContent, freeze
from punie_ide.permission import Question


@frozen
class PromptSent:
    """The person's words went out; everything up to the next `TurnFinished` is the agent's work on them."""

    text: str


@frozen
class TextSaid:
    """A piece of the answer."""

    text: str


@frozen
class ThoughtSaid:
    """A piece of the model's reasoning."""

    text: str


@frozen
class CallAnnounced:
    """The agent wants to use a tool: the card appears."""

    call_id: str
    title: str
    kind: str
    status: str
    locations: tuple[str, ...] = ()
    content: tuple[ResultContent, ...] = ()
    raw_input: JsonValue = field(default=None, converter=freeze)


@frozen
class CallMoved:
    """The card changed; None means unchanged."""

    call_id: str
    status: str | None = None
    title: str | None = None
    content: tuple[ResultContent, ...] | None = None
    raw_output: JsonValue = field(default=None, converter=freeze)


@frozen
class PermissionAsked:
    """The agent put a question to the person."""

    question: Question


@frozen
class PermissionAnswered:
    """The answer went out: the option picked, or None for a question that was dismissed."""

    call_id: str
    option_id: str | None


@frozen
class ToolsListed:
    """The agent asked for the IDE's tools and was told this page."""

    names: tuple[str, ...]


@frozen
class ToolUsed:
    """The agent called a tool of the IDE, which has answered."""

    call_id: str
    name: str
    arguments: JsonValue = field(converter=freeze)
    text: str
    is_error: bool = False


@frozen
class FileRead:
    """A file was read, by the agent or by a tool of the IDE."""

    path: str


@frozen
class FileWritten:
    """A file was written; `old_text` is None where there was none."""

    path: str
    old_text: str | None
    new_text: str


@frozen
class ProgramStarted:
    """A program runs in a terminal: the agent's, or one that a tool of the IDE runs by itself (`background`)."""

    terminal_id: str
    line: str
    cwd: str
    background: bool = False


@frozen
class ProgramPrinted:
    """The next piece of a program's output."""

    terminal_id: str
    text: str


@frozen
class ProgramEnded:
    """A program ended: an exit code, or the name of a signal."""

    terminal_id: str
    exit_code: int | None
    signal: str | None = None


@frozen
class TurnFinished:
    """The agent answered the prompt."""

    stop_reason: str


@frozen
class UpdateSkipped:
    """An update that this IDE has no picture for (a plan, usage, a newer kind)."""

    kind: str
    body: JsonValue = field(default=None, converter=freeze)


IdeEvent: TypeAlias = (
    PromptSent
    | TextSaid
    | ThoughtSaid
    | CallAnnounced
    | CallMoved
    | PermissionAsked
    | PermissionAnswered
    | ToolsListed
    | ToolUsed
    | FileRead
    | FileWritten
    | ProgramStarted
    | ProgramPrinted
    | ProgramEnded
    | TurnFinished
    | UpdateSkipped
)
