"""`punie completion`: the script that makes a shell complete our commands."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from punie.commands.flags import new_command

if TYPE_CHECKING:
    from punie.commands.flags import Commands

SHELLS = ("bash", "zsh", "fish", "tcsh", "powershell")


def add(commands: Commands) -> None:
    """Declare the command with its flags."""
    completion = new_command(commands, "completion", "print what makes a shell complete punie's commands", _run)
    completion.add_argument("shell", metavar="SHELL", choices=SHELLS, help=", ".join(SHELLS))


def _run(arguments: argparse.Namespace) -> int:
    from punie.commands.completion.run import run_completion

    return run_completion(arguments.parser, arguments.shell)
