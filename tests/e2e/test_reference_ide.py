"""The reference IDE is a client for any agent: here for one made with the official SDK."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import anyio
import pytest

from punie_ide.events import FileWritten, ProgramEnded
from punie_ide.local import open_local_ide
from punie_ide.permission import Question
from punie_ide.tools import IdeTool, ToolContext

pytestmark = pytest.mark.anyio

AGENT = Path(__file__).with_name("agent_of_the_sdk.py")


async def shout(arguments: dict[str, Any], _context: ToolContext) -> str:
    return str(arguments["text"]).upper()


def yes(question: Question) -> str | None:
    return question.options[0].id


@pytest.mark.requirement("S0-26")
async def test_an_agent_of_the_official_sdk_uses_everything_that_the_ide_serves(project: Path) -> None:
    root = str(project)
    (project / "a.txt").write_text("one\ntwo\nthree\n")
    agent = [sys.executable, str(AGENT)]
    with anyio.fail_after(40):
        async with open_local_ide(root, agent=agent, tools=[IdeTool("shout", shout)], decide=yes) as ide:
            session = await ide.new_session(root)
            turn = await session.prompt("hello")
            await session.close()
    assert turn.stop_reason == "end_turn"
    assert turn.text == (
        "heard: hello; read: two; answered: selected yes; ran: from a program 0; tools: ['shout']; tool said: X"
    )
    assert (project / "a.txt").read_text() == "new\n"
    assert [call.title for call in turn.calls] == ["Editing a.txt"]
    assert [event.new_text for event in turn.of(FileWritten)] == ["new\n"]
    assert [event.exit_code for event in turn.of(ProgramEnded)] == [0]
