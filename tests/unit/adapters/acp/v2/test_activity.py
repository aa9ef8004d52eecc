"""What a session is said to do: running, waiting for its person, idle; told when it changes and not else."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import pytest

from punie.adapters.acp.v2.activity import Activity, State, Update, state_update
from punie.domain.session.events import TextDelta, ToolCallUpdated
from punie.domain.tools.execution import CallStatus

DONE = {**state_update(State.IDLE), "stopReason": "end_turn"}


class Told:
    """An activity, and the states it told."""

    def __init__(self) -> None:
        self.states: list[str] = []
        self.activity = Activity(self._hear)

    def _hear(self, update: Update) -> None:
        assert update["sessionUpdate"] == "state_update"
        self.states.append(str(update["state"]))

    def moves(self, call_id: str, status: CallStatus) -> None:
        self.activity.follow(ToolCallUpdated(call_id, status))

    def withdraws(self, call_id: str, meanwhile: Callable[[], None] | None = None) -> None:
        """A question is put and taken back."""
        with suppress(KeyboardInterrupt), self.activity.asking(call_id):
            if meanwhile is not None:
                meanwhile()
            raise KeyboardInterrupt


def test_a_turn_without_questions_runs_and_ends() -> None:
    told = Told()
    told.activity.begin()
    told.activity.follow(TextDelta("hi"))
    told.moves("a", CallStatus.IN_PROGRESS)
    told.moves("a", CallStatus.COMPLETED)
    told.activity.end(DONE)
    assert told.states == ["running", "idle"]


def test_a_question_blocks_the_turn_until_all_are_answered() -> None:
    told = Told()
    told.activity.begin()
    with told.activity.asking("a"):
        with told.activity.asking("b"):
            pass
        assert told.states == ["running", "requires_action"]
    assert told.states[2:] == ["running"]


def test_a_call_at_work_keeps_the_session_running() -> None:
    told = Told()
    told.activity.begin()
    told.moves("busy", CallStatus.IN_PROGRESS)
    with told.activity.asking("asks"):
        assert told.states == ["running"]
        told.moves("busy", CallStatus.FAILED)
        assert told.states == ["running", "requires_action"]
        told.moves("next", CallStatus.IN_PROGRESS)
        assert told.states[2:] == ["running"]


@pytest.mark.parametrize("asker", ["form", None])
def test_a_call_that_itself_waits_for_a_form_is_not_at_work(asker: str | None) -> None:
    told = Told()
    told.activity.begin()
    told.moves("form", CallStatus.IN_PROGRESS)
    with told.activity.asking(asker):
        assert told.states == ["running", "requires_action"]


def test_a_question_outside_of_a_turn_changes_nothing() -> None:
    told = Told()
    with told.activity.asking(None):
        pass
    told.moves("late", CallStatus.COMPLETED)
    assert told.states == []


def test_a_turn_that_was_told_to_stop_is_not_said_to_go_on() -> None:
    told = Told()
    told.activity.begin()
    told.withdraws("a", told.activity.stop)
    told.moves("a", CallStatus.FAILED)
    told.activity.end(DONE)
    assert told.states == ["running", "requires_action", "idle"]
    told.activity.begin()
    with told.activity.asking("b"):
        pass
    assert told.states[3:] == ["running", "requires_action", "running"], "the next turn begins anew"


def test_a_question_that_was_withdrawn_leaves_the_turn_running_with_its_next_step() -> None:
    told = Told()
    told.activity.begin()
    told.withdraws("a")
    assert told.states == ["running", "requires_action"]
    told.moves("a", CallStatus.FAILED)
    assert told.states[2:] == ["running"]
