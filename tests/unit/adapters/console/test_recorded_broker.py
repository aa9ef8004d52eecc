"""Answers that were written down before: in their order, and none that nobody wrote."""

from __future__ import annotations

import pytest

from punie.adapters.console.questions import RecordedBroker
from punie.domain.permission.flow import ALLOW_ONCE, REJECT, Dismissed, PermissionQuestion, Selected
from punie.domain.tools.tool import ToolKind

pytestmark = pytest.mark.anyio

QUESTION = PermissionQuestion(
    "s", "c", "write_file", "Writing a", ToolKind.EDIT, "it changes a file", (ALLOW_ONCE, REJECT)
)


async def test_answers_are_given_in_their_order_and_what_is_left_is_counted() -> None:
    broker = RecordedBroker(["allow_once", None, "reject"])
    assert await broker.ask(QUESTION) == Selected("allow_once")
    assert isinstance(await broker.ask(QUESTION), Dismissed)
    assert (broker.unused, broker.questions) == (1, [QUESTION, QUESTION])
    assert await broker.ask(QUESTION) == Selected("reject")
    assert broker.unused == 0


async def test_a_question_that_no_answer_was_recorded_for_is_no_leave() -> None:
    outcome = await RecordedBroker().ask(QUESTION)
    assert outcome == Dismissed("no answer was recorded for it")
