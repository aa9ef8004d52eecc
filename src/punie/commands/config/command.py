"""`punie config`: the settings in force."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from punie.commands.flags import add_mode, add_model, new_action, new_actions

if TYPE_CHECKING:
    from punie.commands.flags import Commands


def add(commands: Commands) -> None:
    """Declare the command with its flags."""
    actions = new_actions(commands, "config", "the settings in force, and where each came from", _run)
    show = new_action(actions, "show", "every setting with its value, as TOML", as_json=True, cwd=True)
    show.add_argument(
        "--sources", action="store_true", help="also where each value came from, and the files that count"
    )
    explain = new_action(
        actions, "explain", "what a setting means, and how its value came about", as_json=True, cwd=True
    )
    explain.add_argument("key", metavar="KEY", help="its dotted name, such as limits.time_s")
    for action in (show, explain):
        add_model(action)
        add_mode(action)


def _run(arguments: argparse.Namespace) -> int:
    from punie.commands.config.run import run_config

    return run_config(
        key=getattr(arguments, "key", None),
        sources=getattr(arguments, "sources", False),
        as_json=arguments.json,
        cwd=arguments.cwd,
        flags={"model": arguments.model, "permissions.mode": arguments.mode},
    )
