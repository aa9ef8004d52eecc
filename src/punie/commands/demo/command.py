"""`punie demo`: the main job, played."""

from __future__ import annotations

import argparse
from functools import partial
from typing import TYPE_CHECKING

from punie.commands.flags import add_model, new_command

if TYPE_CHECKING:
    from punie.commands.flags import Commands


def add(commands: Commands) -> None:
    """Declare the command with its flags."""
    help_text = "play the whole thing on this machine: a small IDE, its tools, a prompt"
    demo = new_command(commands, "demo", help_text, _run)
    add_model(demo)
    demo.add_argument("--project", metavar="DIR", help="the project to work on (default: this repository)")
    demo.add_argument("--interactive", action="store_true", help="answer the questions yourself")
    demo.add_argument("--in-place", action="store_true", help="work on the project itself, not on a copy")


def _run(arguments: argparse.Namespace) -> int:
    import anyio

    from punie.commands.demo.run import run_demo

    run = partial(
        run_demo,
        project=arguments.project,
        model=arguments.model,
        interactive=arguments.interactive,
        in_place=arguments.in_place,
    )
    return anyio.run(run)
