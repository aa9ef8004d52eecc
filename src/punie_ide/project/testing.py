"""The reference IDE's tool that runs tests, and how it runs a program."""

from __future__ import annotations

import re
import sys
from typing import Any

import anyio

from punie.api import Command, ExitStatus, ToolFailedError
from punie_ide.project.arguments import argument, terminals_of
from punie_ide.project.files import absolute, files_below
from punie_ide.tools import IdeTool, ToolAnswer, ToolContext

RUN_LIMIT_S = 120.0


async def run(context: ToolContext, program: str, *args: str) -> tuple[str, ExitStatus]:
    """What it printed and how it ended; released in every case. Raises `ToolFailedError`, also when out of time."""
    terminals = terminals_of(context)
    terminal_id = await terminals.create(Command.of(program, args, context.cwd))
    try:
        with anyio.move_on_after(RUN_LIMIT_S):
            status = await terminals.wait(terminal_id)
            return (await terminals.output(terminal_id)).text, status
        raise ToolFailedError(f"{program} was stopped: it took longer than {RUN_LIMIT_S:g} s.")
    finally:
        with anyio.CancelScope(shield=True):
            await terminals.release(terminal_id)


_RAN = re.compile(r"^Ran (\d+) tests?", re.MULTILINE)
_NO_TESTS = 5
"""The exit code of unittest (since Python 3.12) where it found no test."""


async def _run_tests(arguments: dict[str, Any], context: ToolContext) -> ToolAnswer:
    folder = absolute(context.cwd, argument(arguments, "path", "."))
    await files_below(context.cwd, folder, (".py",))
    top = ("-t", context.cwd) if await anyio.Path(folder, "__init__.py").exists() else ()
    output, status = await run(context, sys.executable, "-m", "unittest", "discover", "--verbose", "-s", folder, *top)
    ran = _RAN.search(output)
    count = int(ran.group(1)) if ran else 0
    passed = status.exit_code == 0 and count > 0
    verdict = "no tests were found" if count == 0 and status.exit_code in {0, _NO_TESTS} else str(status)
    summary = f"{count} tests passed." if passed else f"The tests did not pass ({verdict}):\n{output.strip()[-4000:]}"
    structured = {"passed": passed, "count": count, "exit_code": status.exit_code}
    return ToolAnswer(summary, structured, is_error=not passed)


RUN_TESTS = IdeTool(
    "run_tests",
    _run_tests,
    "Run the unittest tests below a folder: how many ran, whether they passed, and the output of those that failed.",
    "execute",
    "Run tests",
    {
        "type": "object",
        "properties": {"path": {"type": "string", "description": "folder, relative to the project", "default": "."}},
        "additionalProperties": False,
    },
    requires_permission=True,
    categories=("testing",),
)
