"""The changes of an open session as a person looks them over: listed, accepted and rejected, by command and request."""

from __future__ import annotations

import pytest

from punie.application.agent import PunieAgent
from punie.application.tools.files.file_memory import FileMemory
from punie.application.turns.live_session import SessionCommands
from punie.application.turns.own_commands import OWN_COMMANDS
from punie.application.turns.review import changes
from punie.domain.errors import SessionBusyError, ToolFailedError
from punie.domain.session.log import PromptAccepted
from punie.domain.values.content import Prompt
from punie.ports.history import FileChange, FileVersion
from tests.unit.application.desk_bench import CWD
from tests.unit.application.doubles import changes_of
from tests.unit.application.session_bench import SessionBench
from tests.unit.application.test_own_commands import There

pytestmark = pytest.mark.anyio

A = f"{CWD}/a b"


def text(content: str) -> FileVersion:
    return FileVersion(0o100644, content.encode())


async def opened(bench: SessionBench, agent: PunieAgent) -> There:
    """A session whose first turn changed one file."""
    await bench.opened(agent)
    live = bench.sessions[0]
    live.commands = SessionCommands(OWN_COMMANDS)
    live.desk.registry.unregister("restore_file")  # its history is that of no session
    live.desk.permission.changes = changes_of(bench.client, FileMemory())
    await live.recorder.record.begin_turn(PromptAccepted("t1", Prompt.of_text("go")))
    was, left = text("1\n"), text("2\n")
    await live.desk.permission.changes.history.record(
        FileChange("t1", A, was.key, left.key, "tool", "edit_file"), was, left
    )
    bench.client.files[A] = "2\n"
    return There(bench, agent, live, None)  # type: ignore[arg-type]


async def test_the_command_lists_accepts_and_rejects() -> None:
    bench = SessionBench()
    async with bench.agent() as agent:
        there = await opened(bench, agent)
        shown = "```text\nTurn 1\n  M a b  +1 -1  (tool edit_file)\n```"
        assert await there.answer("/changes") == shown
        assert await there.answer("/changes 1") == shown
        assert "Nothing was changed" in await there.answer("/changes 2")
        assert (
            await there.answer("/changes accept 'a b'")
            == "1 changed files are accepted. `/changes all` still lists them."
        )
        assert "Nothing was changed" in await there.answer("/changes")
        assert await there.answer("/changes all") == shown
        assert "no number" in await there.answer("/changes x")
        assert "reject PATH" in await there.answer("/changes a b c")
        assert "did not change" in await there.answer("/changes reject other")
        assert "quotation" in await there.answer("/changes 'a")


async def test_requests_accept_and_reject_unless_a_turn_runs_or_nothing_is_kept() -> None:
    bench = SessionBench()
    async with bench.agent() as agent:
        there = await opened(bench, agent)
        session, written = there.session, dict[str, FileVersion]()
        known = session.desk.permission.changes
        assert known is not None

        async def put(path: str, version: FileVersion) -> None:
            written[path] = version

        known.history.put = put  # type: ignore[method-assign]
        assert await agent.accept_changes(session.id, []) == (A,)
        assert await agent.changes(session.id) == ()
        await agent.reject_changes(session.id, "a b", [1])
        assert written == {A: text("1\n")}
        bench.client.files[A] = "1\n"
        assert [row.tool for row in await agent.changes(session.id, everything=True)] == ["edit_file", "reject"]
        turn = agent.begin_turn(session.id, Prompt.of_text("go"))
        with pytest.raises(SessionBusyError):
            await agent.reject_changes(session.id, "a b", [])
        await turn.run()
        known.disk = None
        with pytest.raises(ToolFailedError):
            await changes(session)
