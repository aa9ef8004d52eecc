"""Running a program to its end in the IDE's terminals."""

from __future__ import annotations

import anyio

from punie.api import Command, ExitStatus, ToolFailedError
from punie_ide.project.arguments import terminals_of
from punie_ide.tools import ToolContext

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
