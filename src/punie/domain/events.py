"""What happens during a turn, in the order it happened (DESIGN.md section 3: the one-way side lane)."""

from __future__ import annotations

from typing import TypeAlias

from attrs import frozen

from punie.domain.content import ResultContent
from punie.domain.execution import CallStatus, Severity
from punie.domain.json_value import JsonValue
from punie.domain.modes import Mode, Verdict
from punie.domain.tool import ToolDescriptor, ToolKind
from punie.domain.turn import StopReason
from punie.domain.usage import Usage


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
    """A call appears, pending: the first event of its life."""

    call_id: str
    tool: str
    title: str
    kind: ToolKind
    locations: tuple[str, ...] = ()
    raw_input: JsonValue = None


@frozen
class ToolCallUpdated:
    """A call moved on. None means unchanged; `content` replaces what was shown before."""

    call_id: str
    status: CallStatus | None = None
    content: tuple[ResultContent, ...] | None = None
    raw_output: JsonValue = None


@frozen
class PermissionSettled:
    """The desk knows whether a call may run: for logs and headless front ends, not for ACP."""

    call_id: str
    tool: str
    verdict: Verdict
    reason: str


@frozen
class SecurityViolation:
    """A call tried what the session forbids and was refused; `rule` names what it broke (S2-32)."""

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
class UsageChanged:
    """The turn's totals so far."""

    usage: Usage


@frozen
class ToolsChanged:
    """Tools went and came since the last such event, or since the session opened; one that changed is in both.

    `unregistered` are names. It belongs to no turn and may come between two of them (S2-18, S2-19).
    """

    unregistered: tuple[str, ...]
    registered: tuple[ToolDescriptor, ...]


@frozen
class TurnEnded:
    """The turn is over; nothing of it follows. Without a stop reason where it failed: its caller has the error."""

    stop_reason: StopReason | None


SessionEvent: TypeAlias = (
    TextDelta
    | ThoughtDelta
    | ToolCallAnnounced
    | ToolCallUpdated
    | PermissionSettled
    | SecurityViolation
    | UsageChanged
    | ToolsChanged
    | ModeChanged
    | TurnEnded
)
