"""`punie pipelines`: composed tools."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from punie.commands.flags import add_mode, add_rules, new_action, new_actions, permission_flags

if TYPE_CHECKING:
    from punie.commands.flags import Commands


def add(commands: Commands) -> None:
    """Declare the command with its flags."""
    actions = new_actions(commands, "pipelines", "list, check, run composed tools", _run)
    new_action(actions, "list", "the pipelines that a session here would have", as_json=True, cwd=True)
    check = new_action(actions, "check", "everything that is wrong with a pipeline file", as_json=True, cwd=True)
    check.add_argument("file", metavar="FILE")
    run = new_action(actions, "run", "run a pipeline, each step asking as in a session", as_json=True, cwd=True)
    run.add_argument("name", metavar="NAME")
    run.add_argument("--input", metavar="K=V", action="append", default=[], help="one input; may be repeated")
    run.add_argument("--inputs", metavar="JSON", help="inputs as a JSON object")
    add_mode(run)
    add_rules(run)


def _run(arguments: argparse.Namespace) -> int:
    from punie.commands.pipelines.run import run_pipelines

    words: dict[str, object] = {}
    if arguments.action == "check":
        words = {"file": arguments.file}
    elif arguments.action == "run":
        flags = permission_flags(arguments)
        words = {"name": arguments.name, "input": arguments.input, "inputs": arguments.inputs, "flags": flags}
    return run_pipelines(action=arguments.action, cwd=arguments.cwd, as_json=arguments.json, words=words)
