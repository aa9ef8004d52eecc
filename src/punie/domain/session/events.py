"""The events of a session, in the order in which they happen."""

from __future__ import annotations

from enum import StrEnum
from typing import TypeAlias

from attrs import frozen

from punie.domain.model.choice import Effort
from punie.domain.model.compaction import CompactionStatus
from punie.domain.model.usage import Usage
from punie.domain.permission.modes import AnsweredBy, Mode, Verdict
from punie.domain.session.commands import CommandInfo
from punie.domain.session.turn import Plan, StopReason
from punie.domain.tools.execution import CallStatus, Severity
from punie.domain.tools.tool import ToolDescriptor, ToolKind, ToolOutcome
from punie.domain.values.content import ResultContent
from punie.domain.values.json_value import JsonValue


@frozen
class TextDelta:
    """The next piece of the answer; pieces of one message share `message_id` where the engine knows it."""

    text: str
    message_id: str | None = None


@frozen
class ThoughtDelta:
    """The next piece of the model's reasoning."""

    text: str
    message_id: str | None = None


@frozen
class ToolCallAnnounced:
    """A call appears, pending: the first event of its life. `line`, from 1, is in the first of the locations."""

    call_id: str
    tool: str
    title: str
    kind: ToolKind
    locations: tuple[str, ...] = ()
    raw_input: JsonValue = None
    line: int | None = None


@frozen
class ToolCallUpdated:
    """A call moved on. None means unchanged; `content` and `locations` replace what was shown before.

    `line`, from 1, is in the first of the locations.
    """

    call_id: str
    status: CallStatus | None = None
    content: tuple[ResultContent, ...] | None = None
    raw_output: JsonValue = None
    locations: tuple[str, ...] | None = None
    line: int | None = None


@frozen
class CallFinished:
    """What the model is told of a call, just before its card ends: for the session's log, not for ACP."""

    call_id: str
    tool: str
    outcome: ToolOutcome
    for_model: str


@frozen
class TitleChanged:
    """The session is called that from now on."""

    title: str


@frozen
class PlanChanged:
    """The agent's whole plan from now on; an empty one takes it away."""

    plan: Plan


@frozen
class PermissionSettled:
    """The desk knows whether a call may run: for logs and headless front ends, not for ACP."""

    call_id: str
    tool: str
    verdict: Verdict
    reason: str


@frozen
class PermissionAsked:
    """A person is asked whether a call may run: for the session's log, not for ACP, which has a request of its own.

    `options` are what the answer may be, in the words of the question.
    """

    call_id: str
    reason: str
    options: tuple[str, ...] = ()


@frozen
class PermissionAnswered:
    """What came of the question about that call: for the session's log, not for ACP.

    `choice` is the option that was picked, in the question's words; None where none was picked.
    """

    call_id: str
    verdict: Verdict
    reason: str
    answered_by: AnsweredBy
    choice: str | None = None


@frozen
class SecurityViolation:
    """A call tried what the session forbids and was refused; `rule` names what it broke."""

    call_id: str
    tool: str
    rule: str
    severity: Severity
    detail: str


@frozen
class ModeChanged:
    """The session decides in another mode from now on. It belongs to no turn and may come between two of them."""

    mode: Mode


@frozen
class ModelChanged:
    """That model answers from the next turn on, and thinks so hard; it comes between two turns or during one."""

    model: str
    effort: Effort | None = None


@frozen
class ModelMenuChanged:
    """There are other models, or efforts, to choose from than the client was told of; what is in use stays."""


@frozen
class UsageChanged:
    """The turn's totals so far."""

    usage: Usage


class RequestEnding(StrEnum):
    """How a request to the model ended."""

    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


@frozen
class RequestEnded:
    """A request to the model is over: for the session's log, not for ACP.

    It took `elapsed_s`, and its first piece came `first_s` after it began; None where it had none. `usage` is its own.
    """

    model: str
    elapsed_s: float
    usage: Usage
    first_s: float | None = None
    ending: RequestEnding = RequestEnding.DONE


@frozen
class ContextUsed:
    """How much of the model's context its last request took: everything sent, cached or not, and what came back.

    An engine says `used_tokens`, and `size_tokens` where it knows the context's size better than the settings;
    `cost_usd` is the session's so far and filled in on the way.
    """

    used_tokens: int
    size_tokens: int | None = None
    cost_usd: float | None = None


@frozen
class CompactionDelta:
    """The next piece of the summary that takes the place of what was said before."""

    compaction_id: str
    text: str


@frozen
class CompactionChanged:
    """The engine's history is being made shorter, or it was; `summary` is the whole of it, once it is complete.

    Where it failed, `error` says why, and the history is as it was.
    """

    compaction_id: str
    status: CompactionStatus
    summary: str | None = None
    error: str | None = None


@frozen
class CommandsChanged:
    """The slash commands that a person may use, all of them. It belongs to no turn and may come between two of them."""

    commands: tuple[CommandInfo, ...]


class NoticeSeverity(StrEnum):
    """How much a notice matters; values are ACP's."""

    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


@frozen
class NoticeGiven:
    """Something that a person should know, beside the conversation. It is not kept, and may come between two turns."""

    severity: NoticeSeverity
    title: str
    description: str | None = None


@frozen
class HistoryForgotten:
    """The engine knows nothing of what came before this; the session's log still holds it."""


@frozen
class ToolsChanged:
    """Tools went and came since the last such event, or since the session opened; one that changed is in both.

    `unregistered` are names. It belongs to no turn and may come between two of them.
    """

    unregistered: tuple[str, ...]
    registered: tuple[ToolDescriptor, ...]


@frozen
class TurnEnded:
    """The turn is over; nothing of it follows. Without a stop reason where it failed: `failure` says why, if known."""

    stop_reason: StopReason | None
    failure: str | None = None


SessionEvent: TypeAlias = (
    TextDelta
    | ThoughtDelta
    | ToolCallAnnounced
    | ToolCallUpdated
    | CallFinished
    | TitleChanged
    | PlanChanged
    | PermissionSettled
    | PermissionAsked
    | PermissionAnswered
    | SecurityViolation
    | UsageChanged
    | RequestEnded
    | ContextUsed
    | CommandsChanged
    | NoticeGiven
    | CompactionDelta
    | CompactionChanged
    | HistoryForgotten
    | ToolsChanged
    | ModeChanged
    | ModelChanged
    | ModelMenuChanged
    | TurnEnded
)
