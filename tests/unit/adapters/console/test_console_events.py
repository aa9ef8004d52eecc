"""Events for a person at a terminal and for a program that reads JSON lines (INTERFACES.md section 1)."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest

from punie.adapters.acp.updates import encode_update
from punie.adapters.console.front_end import DenialTally, JsonLinesSink, TextSink
from punie.domain.permission.policy import Verdict
from punie.domain.session.events import (
    PermissionSettled,
    SessionEvent,
    TextDelta,
    ThoughtDelta,
    ToolCallAnnounced,
    ToolCallUpdated,
    TurnEnded,
    UsageChanged,
)
from punie.domain.session.turn import StopReason, Usage
from punie.domain.tools.execution import CallStatus
from punie.domain.tools.tool import ToolKind
from punie.domain.values.content import Text

pytestmark = pytest.mark.anyio

ANNOUNCED = ToolCallAnnounced("c", "read_file", "Reading a", ToolKind.READ)
STARTED = ToolCallUpdated("c", CallStatus.IN_PROGRESS)
DONE = ToolCallUpdated("c", CallStatus.COMPLETED)
FAILED = ToolCallUpdated("c", CallStatus.FAILED)
DENIED = PermissionSettled("c", "read_file", Verdict.DENY, "no")
ALLOWED = PermissionSettled("c", "read_file", Verdict.ALLOW, "yes")
ENDED = TurnEnded(StopReason.END_TURN)


async def texts(*events: SessionEvent) -> tuple[str, str]:
    out, notes = io.StringIO(), io.StringIO()
    sink = TextSink(out, notes, DenialTally())
    for event in events:
        await sink.emit(event)
    return out.getvalue(), notes.getvalue()


async def test_the_answer_goes_out_as_it_comes_and_ends_with_a_newline() -> None:
    assert await texts(TextDelta("Hel"), TextDelta("lo"), ENDED) == ("Hello\n", "")
    assert await texts(TextDelta("Hello\n"), ENDED) == ("Hello\n", "")
    assert await texts(TextDelta(""), ENDED) == ("", "")
    assert await texts(TextDelta("Hello\n"), TextDelta(""), ENDED) == ("Hello\n", "")


async def test_what_tools_did_is_noted_on_lines_of_its_own() -> None:
    out, notes = await texts(
        TextDelta("I look"), ANNOUNCED, STARTED, DONE, TextDelta("Done."), ANNOUNCED, FAILED, ENDED
    )
    assert out == "I look\nDone.\n"
    assert notes == "- done: Reading a\n- failed: Reading a\n"


async def test_the_steps_of_delegates_are_noted_and_nothing_is_while_a_question_is_open() -> None:
    out, notes = io.StringIO(), io.StringIO()
    questions: list[str] = []
    sink = TextSink(out, notes, DenialTally(), lambda: bool(questions))
    await sink.emit(ToolCallAnnounced("d", "delegate", "Delegate: " + "x" * 100, ToolKind.OTHER))
    await sink.emit(ToolCallUpdated("d", content=(Text("Step 1: Reading a\u202e"),)))
    await sink.emit(ToolCallUpdated("c", content=(Text("not a delegate's"),)))
    (step,) = notes.getvalue().splitlines()
    assert step.startswith("- Delegate: xxx")
    assert step.endswith(": Step 1: Reading a")
    assert len(step) < 100
    questions.append("?")
    for event in (ANNOUNCED, DONE, ToolCallUpdated("d", CallStatus.COMPLETED)):
        await sink.emit(event)
    assert len(notes.getvalue().splitlines()) == 1
    questions.clear()
    await sink.emit(TextDelta("all done"))
    assert len(notes.getvalue().splitlines()) == 3
    assert out.getvalue() == "all done"


async def test_thoughts_usage_and_questions_are_not_the_answer() -> None:
    assert await texts(ThoughtDelta("hm"), UsageChanged(Usage(1)), DENIED, ToolCallUpdated("c", None, ()), ENDED) == (
        "",
        "",
    )


async def test_nothing_unsafe_reaches_the_screen() -> None:
    evil = "a\x1b[31mb\u202ec\x07"
    out, notes = await texts(TextDelta(evil), ToolCallAnnounced("c", "x", evil, ToolKind.OTHER), DONE)
    assert not {"\x1b", "\u202e", "\x07"} & set(out + notes)


async def lines(*events: SessionEvent) -> list[dict[str, Any]]:
    out = io.StringIO()
    sink = JsonLinesSink(out, encode_update, DenialTally())
    for event in events:
        await sink.emit(event)
    return [json.loads(line) for line in out.getvalue().splitlines()]


async def test_updates_and_questions_are_one_line_of_json_each_in_order() -> None:
    written = await lines(TextDelta("a\nb\ud800"), DENIED, UsageChanged(Usage(1)), STARTED, ENDED)
    assert [line["type"] for line in written] == ["update", "permission", "update"]
    assert written[0]["update"]["content"]["text"] == "a\nb\ud800"
    assert written[1] == {"type": "permission", "tool": "read_file", "verdict": "deny", "reason": "no"}


@pytest.mark.parametrize(
    ("events", "denied"),
    [
        ([], False),
        ([DENIED], True),
        ([DENIED, FAILED], True),
        ([ALLOWED, DONE], False),
        ([DENIED, FAILED, DONE], False),
        ([DONE, DENIED], True),
        ([DENIED, FAILED, ANNOUNCED, STARTED, FAILED], True),
        ([DENIED, ALLOWED], True),
    ],
)
@pytest.mark.parametrize("how", ["text", "json"])
async def test_it_is_kept_whether_a_denial_was_the_last_word(
    events: list[SessionEvent], denied: bool, how: str
) -> None:
    tally, out = DenialTally(), io.StringIO()
    sink = TextSink(out, out, tally) if how == "text" else JsonLinesSink(out, encode_update, tally)
    for event in events:
        await sink.emit(event)
    assert tally.denied_last is denied
