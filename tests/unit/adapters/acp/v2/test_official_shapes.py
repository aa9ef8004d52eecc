"""Every event that is told in ACP v2, judged by the official schema of the draft; unknown members are refused."""

from __future__ import annotations

import pytest

from punie.adapters.acp.config_options import config_update
from punie.adapters.acp.v2.activity import Update
from punie.adapters.acp.v2.client import encode_question
from punie.adapters.acp.v2.foreground import MessageIds
from punie.adapters.acp.v2.updates import Updates, encode_options
from punie.domain.model.compaction import CompactionStatus
from punie.domain.model.provider import Effort, ModelChoice, ModelMenu
from punie.domain.permission.flow import ALLOW_ONCE, REJECT, PermissionQuestion
from punie.domain.session.events import (
    CommandsChanged,
    CompactionChanged,
    CompactionDelta,
    ContextUsed,
    NoticeGiven,
    NoticeSeverity,
    PlanChanged,
    SecurityViolation,
    SessionEvent,
    TextDelta,
    ThoughtDelta,
    TitleChanged,
    ToolCallAnnounced,
    ToolCallUpdated,
)
from punie.domain.session.log import LoggedEvent, PromptAccepted
from punie.domain.session.prompt_files import CommandInfo
from punie.domain.session.session import SessionOptions
from punie.domain.session.turn import PlanStep
from punie.domain.tools.execution import CallStatus, Severity
from punie.domain.tools.tool import ToolKind
from punie.domain.values.content import Diff, EmbeddedResource, Image, Prompt, ResourceLink, TerminalView, Text
from punie.domain.values.json_value import freeze_object
from tests.e2e.official_schema import OfficialSchema, missing_reason, must_be_present

BLOCKS = (
    Text("a"), Image("aGk=", "image/png"), ResourceLink("file:///a", "a"), EmbeddedResource("file:///b", text="b"),
)  # fmt: skip
EVENTS: tuple[SessionEvent | LoggedEvent, ...] = (
    PromptAccepted("t", Prompt(BLOCKS)),
    TextDelta("a"),
    ThoughtDelta("a", "m"),
    ToolCallAnnounced("c", "x", "X", ToolKind.OTHER, ("/a",), freeze_object({"a": [None, 1]}), 1),
    ToolCallUpdated("c", CallStatus.IN_PROGRESS, (*BLOCKS, Diff("/a", None, "x"), TerminalView("t"))),
    SecurityViolation("c", "x", "roots", Severity.HIGH, "no"),
    ToolCallUpdated("c", CallStatus.FAILED, raw_output="gone", locations=("/b",)),
    TitleChanged("t"),
    PlanChanged((PlanStep("a"),)),
    PlanChanged(()),
    CommandsChanged((CommandInfo("a", "b", "c"), CommandInfo("d", "e"))),
    NoticeGiven(NoticeSeverity.WARNING, "t"),
    NoticeGiven(NoticeSeverity.ERROR, "t", "d"),
    ContextUsed(10, 100, 0.5),
    CompactionDelta("k", "a"),
    CompactionChanged("k", CompactionStatus.IN_PROGRESS),
    CompactionChanged("k", CompactionStatus.COMPLETED, "all"),
    CompactionChanged("k", CompactionStatus.FAILED, error="why"),
)
MENU = ModelMenu(ModelChoice("m", Effort.HIGH), ("m", "n"), tuple(Effort))
QUESTION = PermissionQuestion(
    "s", "c", "write_file", "Writing a", ToolKind.EDIT, "it changes a file", (ALLOW_ONCE, REJECT), ("/p/a",),
    (Diff("/p/a", "old", "new"),), freeze_object({"path": "a"}),
)  # fmt: skip


@pytest.fixture(scope="module")
def schema() -> OfficialSchema:
    found = OfficialSchema.load(2)
    if found is None:
        (pytest.fail if must_be_present() else pytest.skip)(str(missing_reason()))
    return found


def judged(schema: OfficialSchema, update: Update | None) -> str | None:
    assert update is not None
    return schema.notification_from_agent("session/update", {"sessionId": "s", "update": update})


@pytest.mark.parametrize("live", [True, False])
def test_every_update_is_one_of_the_drafts(schema: OfficialSchema, live: bool) -> None:
    updates = Updates(MessageIds(), live=live)
    assert [judged(schema, updates.encode(event)) for event in EVENTS] == [None] * len(EVENTS)


def test_the_options_with_every_effort_are_the_drafts(schema: OfficialSchema) -> None:
    assert judged(schema, config_update(encode_options(SessionOptions(models=MENU)))) is None


def test_a_question_is_the_drafts(schema: OfficialSchema) -> None:
    assert schema.request_from_agent("session/request_permission", encode_question(QUESTION)) is None


def test_an_update_of_version_one_is_not(schema: OfficialSchema) -> None:
    chunk: Update = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "no id"}}
    assert judged(schema, chunk) is not None
