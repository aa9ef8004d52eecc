"""`/undo` in an open session: it shows its plan, asks, and goes back or leaves all as it is."""

from __future__ import annotations

import pytest
from pytest_mock import MockerFixture

from punie.application.turns import review
from punie.domain.errors import ToolFailedError
from punie.ports.history import Part
from tests.unit.application.session_bench import SessionBench
from tests.unit.application.test_review import opened

pytestmark = pytest.mark.anyio


async def test_it_shows_its_plan_and_says_what_it_does_not_understand() -> None:
    bench = SessionBench()
    async with bench.agent() as agent:
        there = await opened(bench, agent)
        conversation = "```text\nBack to before turn 1:\n  the conversation, 1 turn from: go\n```"
        assert await there.answer("/undo conversation show") == conversation
        assert "Nothing can be taken back." in await there.answer("/undo files show")
        assert "kept: a b: its folder cannot be looked at" in await there.answer("/undo show")
        assert "There is no turn 9: the session has 1 turn." in await there.answer("/undo 9")
        assert "2 is not understood: /undo N | files" in await there.answer("/undo 1 2")
        assert "x is not understood" in await there.answer("/undo x")
        assert bench.client.questions == []


async def test_it_asks_and_goes_back_only_after_a_yes_and_where_the_log_takes_it(mocker: MockerFixture) -> None:
    bench = SessionBench()
    async with bench.agent() as agent:
        there = await opened(bench, agent)
        assert "Nothing was taken back." in await there.answer("/undo 1")
        (question,) = bench.client.questions
        assert question.title == "Go back to before turn 1?"
        bench.client.queue_permission_selected("undo_go")
        assert "This session is not kept, so its conversation cannot be taken back" in await there.answer("/undo 1")
        taken = mocker.patch.object(type(there.session.recorder.record), "take_back")
        engine = mocker.patch.object(review, "go_back")
        bench.client.queue_permission_selected("undo_go")
        done = await there.answer("/undo 1")
        assert "turn 1" in done
        assert "- kept: a b: its folder cannot be looked at" in done
        (call,) = taken.await_args_list
        _, until, left, _ = call.args
        assert (until, left) == (None, 0)
        assert engine.await_count == 1


async def test_the_client_s_request_looks_and_does_the_same_and_files_alone_need_a_disk() -> None:
    bench = SessionBench()
    async with bench.agent() as agent:
        there = await opened(bench, agent)
        looked = await agent.rewind(there.session.id, None, Part.CONVERSATION, [], do=False)
        assert (looked.turn, looked.turns) == (1, 1)
        with pytest.raises(ToolFailedError):
            await agent.rewind(there.session.id, 1, Part.BOTH, ["a b"])
        known = there.session.desk.permission.changes
        assert known is not None
        known.disk = None
        with pytest.raises(ToolFailedError):
            await agent.rewind(there.session.id, 1, Part.FILES, [])
