"""The terminal of `punie chat`: its output, and its input before the screen is drawn."""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager

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
