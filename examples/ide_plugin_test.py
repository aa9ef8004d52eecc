"""How the author of an IDE plugin tests a tool: a real Punie calls it, a script says what the model would.

Run it with pytest, or as a program: `python examples/ide_plugin_test.py`.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import anyio

from punie_ide.local import open_local_ide, punie_command
from punie_ide.permission import Question, allow_once
from punie_ide.tools import IdeTool, ToolContext


async def count_words(arguments: dict[str, Any], context: ToolContext) -> dict[str, Any]:
    """The plugin's own work: count the words of a file as the editor holds it."""
    assert context.workspace is not None  # noqa: S101 - this IDE is opened with files
    text = await context.workspace.read_text(f"{context.cwd}/{arguments['path']}")
    return {"path": arguments["path"], "words": len(text.split())}


COUNT_WORDS = IdeTool(
    "count_words",
    count_words,
    "Count the words of a file.",
    input_schema={"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
    requires_permission=True,
)


def test_the_agent_finds_the_tool_asks_leave_and_gets_the_count() -> None:
    """Discovery, the question, the call and its result, over a real process."""
    with tempfile.TemporaryDirectory() as folder:
        anyio.run(converse, Path(folder).resolve())


async def converse(project: Path) -> None:
    """One session, one prompt."""
    (project / "notes.txt").write_text("three small words", encoding="utf-8")
    call = {"call": {"name": "count_words", "arguments": {"path": "notes.txt"}}}
    (project / "model.json").write_text(json.dumps({"turns": [[call, {"result": True}]]}), encoding="utf-8")
    agent = punie_command(f"script:{project / 'model.json'}")
    async with open_local_ide(str(project), agent=agent, tools=[COUNT_WORDS], decide=allow_once) as ide:
        session = await ide.new_session(str(project))
        turn = await session.prompt("How many words are in notes.txt?")
    questions: tuple[Question, ...] = turn.questions
    assert (turn.tools_used, len(questions)) == (("count_words",), 1)  # noqa: S101 - a test asserts
    assert '"words": 3' in turn.text  # noqa: S101 - a test asserts


if __name__ == "__main__":
    test_the_agent_finds_the_tool_asks_leave_and_gets_the_count()
    print("the agent found count_words, asked leave, and got the count")
