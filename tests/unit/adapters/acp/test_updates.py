"""Session events as ACP's updates (S3-24, S3-29, M-04)."""

from __future__ import annotations

from typing import Any

import pytest

from punie.adapters.acp.updates import encode_update
from punie.domain.permission.policy import Verdict
from punie.domain.session.events import (
    PermissionSettled,
    SecurityViolation,
    SessionEvent,
    TextDelta,
    ThoughtDelta,
    ToolCallAnnounced,
    ToolCallUpdated,
    TurnEnded,
    UsageChanged,
)
from punie.domain.session.turn import StopReason, Usage
from punie.domain.tools.execution import CallStatus, Severity
from punie.domain.tools.tool import ToolKind
from punie.domain.values.content import Diff, EmbeddedResource, Image, ResourceLink, TerminalView, Text
from punie.domain.values.json_value import freeze


@pytest.mark.requirement("S3-29")
@pytest.mark.parametrize(
    ("event", "update"),
    [
        (
            TextDelta("a\n"),
            {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "a\n"}},
        ),
        (
            ThoughtDelta("", "m-1"),
            {"sessionUpdate": "agent_thought_chunk", "content": {"type": "text", "text": ""}, "messageId": "m-1"},
        ),
        (
            ToolCallAnnounced("c", "read_file", "Reading a", ToolKind.READ, ("/a",), freeze({"path": ["a"]})),
            {
                "sessionUpdate": "tool_call", "toolCallId": "c", "title": "Reading a", "kind": "read",
                "status": "pending", "rawInput": {"path": ["a"]}, "locations": [{"path": "/a"}],
            },
        ),
        (
            ToolCallUpdated("c", CallStatus.IN_PROGRESS),
            {"sessionUpdate": "tool_call_update", "toolCallId": "c", "status": "in_progress"},
        ),
        (
            SecurityViolation("c", "read_file", "roots", Severity.HIGH, "/etc\n/\x1bx is outside"),
            {"sessionUpdate": "tool_call_update", "toolCallId": "c", "_meta": {"punie.dev": {
                "violation": {"severity": "high", "rule": "roots", "reason": "/etc /<U+001B>x is outside"}}}},
        ),
        (
            ToolCallUpdated("c", None, (TerminalView("t"),)),
            {"sessionUpdate": "tool_call_update", "toolCallId": "c",
             "content": [{"type": "terminal", "terminalId": "t"}]},
        ),
        (
            ToolCallUpdated("c", CallStatus.COMPLETED, (), freeze({"n": [1]})),
            {"sessionUpdate": "tool_call_update", "toolCallId": "c", "status": "completed", "content": [],
             "rawOutput": {"n": [1]}},
        ),
    ],
)  # fmt: skip
def test_an_event_becomes_its_update(event: SessionEvent, update: dict[str, Any]) -> None:
    assert encode_update(event) == update


def test_a_call_without_places_names_none() -> None:
    update = encode_update(ToolCallAnnounced("c", "x", "X", ToolKind.OTHER))
    assert update is not None
    assert "locations" not in update


def test_every_kind_of_content_can_be_shown() -> None:
    content = (
        Text("t"), Image("AA==", "image/png"), ResourceLink("file:///a", "a"), EmbeddedResource("u", "t"),
        Diff("/a", "o", "n"), TerminalView("t"),
    )  # fmt: skip
    update: Any = encode_update(ToolCallUpdated("c", CallStatus.FAILED, content))
    assert [item["type"] for item in update["content"]] == ["content"] * 4 + ["diff", "terminal"]


@pytest.mark.parametrize(
    "event",
    [
        UsageChanged(Usage(1)), TurnEnded(StopReason.END_TURN), PermissionSettled("c", "x", Verdict.ALLOW, "why"),
    ],
)  # fmt: skip
def test_what_acp_has_no_update_for_is_not_sent(event: SessionEvent) -> None:
    assert encode_update(event) is None
