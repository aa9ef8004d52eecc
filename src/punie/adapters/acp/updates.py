"""Session events as the inner objects of ACP's `session/update`."""

from __future__ import annotations

from punie.adapters.acp.blocks import encode_result_content
from punie.adapters.acp.handshake import EXTENSION
from punie.adapters.acp.modes import mode_update
from punie.domain.display import one_line
from punie.domain.events import (
    ModeChanged,
    SecurityViolation,
    SessionEvent,
    TextDelta,
    ThoughtDelta,
    ToolCallAnnounced,
    ToolCallUpdated,
)
from punie.domain.execution import CallStatus
from punie.domain.json_value import thaw

REASON_LIMIT_CHARS = 400


def encode_update(event: SessionEvent) -> dict[str, object] | None:
    """The update for one event; None for those that ACP has no stable update for."""
    match event:
        case TextDelta():
            return _chunk("agent_message_chunk", event)
        case ThoughtDelta():
            return _chunk("agent_thought_chunk", event)
        case ToolCallAnnounced():
            return _announced(event)
        case ToolCallUpdated():
            return _updated(event)
        case ModeChanged(mode):
            return mode_update(mode)
        case SecurityViolation():
            return _violated(event)
        case _:
            return None


def _chunk(kind: str, event: TextDelta | ThoughtDelta) -> dict[str, object]:
    update: dict[str, object] = {"sessionUpdate": kind, "content": {"type": "text", "text": event.text}}
    if event.message_id is not None:
        update["messageId"] = event.message_id
    return update


def _announced(event: ToolCallAnnounced) -> dict[str, object]:
    update: dict[str, object] = {
        "sessionUpdate": "tool_call",
        "toolCallId": event.call_id,
        "title": event.title,
        "kind": event.kind.value,
        "status": CallStatus.PENDING.value,
        "rawInput": thaw(event.raw_input),
    }
    if event.locations:
        update["locations"] = [{"path": path} for path in event.locations]
    return update


def _updated(event: ToolCallUpdated) -> dict[str, object]:
    update: dict[str, object] = {"sessionUpdate": "tool_call_update", "toolCallId": event.call_id}
    if event.status is not None:
        update["status"] = event.status.value
    if event.content is not None:
        update["content"] = [encode_result_content(item) for item in event.content]
    if event.raw_output is not None:
        update["rawOutput"] = thaw(event.raw_output)
    return update


def _violated(event: SecurityViolation) -> dict[str, object]:
    """What the call tried, on its card, just before it fails (S2-32); ACP itself has no word for it."""
    reason = one_line(event.detail, REASON_LIMIT_CHARS)
    violation = {"severity": event.severity.value, "rule": event.rule, "reason": reason}
    return {
        "sessionUpdate": "tool_call_update",
        "toolCallId": event.call_id,
        "_meta": {EXTENSION: {"violation": violation}},
    }
