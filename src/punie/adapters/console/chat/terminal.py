"""The terminal of `punie chat`: its output, its input before the screen is drawn, and the pager of a long text."""

from __future__ import annotations

import os
import shlex
import sys
import tempfile
from contextlib import AbstractContextManager

import anyio
from prompt_toolkit.input.defaults import create_input
from prompt_toolkit.output.vt100 import Vt100_Output


def quiet_terminal() -> AbstractContextManager[None]:
    """Take what is typed as it is within the block, Ctrl-C included, without showing it; restored at its end."""
    return create_input().raw_mode()


def terminal_output() -> Vt100_Output:
    """The terminal at stdout, which is never asked where its cursor is: a late answer would be typed into the line."""
    output = Vt100_Output.from_pty(sys.stdout)
    output.enable_cpr = False
    return output


async def in_pager(text: str) -> bool:
    """Show the text in the program that PAGER names, by default `less`, until the person leaves it.

    False where that program cannot be started.
    """
    try:
        with tempfile.TemporaryFile() as file:  # a pager that is left early breaks a pipe
            file.write(text.encode(sys.stdout.encoding, "replace"))
            file.seek(0)
            command = shlex.split(os.environ.get("PAGER", "")) or ["less"]
            await anyio.run_process(command, stdin=file, stdout=None, stderr=None, check=False)
    except (OSError, ValueError):
        return False
    return True
