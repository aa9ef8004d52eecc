"""`punie ask`: one turn without an IDE."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from punie.commands.flags import add_mode, add_model, add_rules, new_command, permission_flags

if TYPE_CHECKING:
    from punie.commands.flags import Commands


def add(commands: Commands) -> None:
    """Declare the command with its flags."""
    ask = new_command(commands, "ask", "run one prompt on this machine, without an IDE", _run)
    add_model(ask)
    add_mode(ask)
    add_rules(ask)
    ask.add_argument("--json", action="store_true", help="print events as JSON, one a line")
    ask.add_argument("--cwd", metavar="DIR", default=".", help="the project's directory (default: this one)")
    ask.add_argument("--session", metavar="ID", help="go on with that session (see: punie sessions list)")
    ask.add_argument("prompt", metavar="PROMPT")


def _run(arguments: argparse.Namespace) -> int:
    from punie.commands.ask.run import run_ask

    return run_ask(
        model=arguments.model,
        permissions=permission_flags(arguments),
        as_json=arguments.json,
        cwd=arguments.cwd,
        prompt=arguments.prompt,
        session=arguments.session,
    )
