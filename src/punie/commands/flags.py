"""Flags that several commands have, each declared once."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from punie.domain.permission.modes import Mode

if TYPE_CHECKING:
    # argparse gives the type of add_subparsers() no public name.
    Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]

Run: TypeAlias = Callable[[argparse.Namespace], int]
"""Runs a command with its arguments; gives the exit code."""


def new_command(commands: Commands, name: str, help_text: str, run: Run) -> argparse.ArgumentParser:
    """A command of that name that runs so; flags are added to what this gives."""
    command = commands.add_parser(name, allow_abbrev=False, help=help_text)
    command.set_defaults(run=run)
    return command


def new_actions(commands: Commands, name: str, help_text: str, run: Run) -> Commands:
    """The actions of a command that has some (`punie tools list`), to add to; the one chosen is `action`."""
    return new_command(commands, name, help_text, run).add_subparsers(dest="action", required=True, metavar="ACTION")


def new_action(
    actions: Commands, name: str, help_text: str, *, as_json: bool = False, cwd: bool = False
) -> argparse.ArgumentParser:
    """An action of that name, with the flags that most have."""
    action = actions.add_parser(name, allow_abbrev=False, help=help_text)
    if as_json:
        action.add_argument("--json", action="store_true", help="print JSON, for programs")
    if cwd:
        action.add_argument("--cwd", metavar="DIR", default=".", help="the project's directory (default: this one)")
    return action


def add_model(command: argparse.ArgumentParser) -> None:
    """`--model`."""
    command.add_argument(
        "--model", metavar="M", help="provider:name, script:FILE.json, or direct (no model); default: the settings'"
    )


def add_mode(command: argparse.ArgumentParser) -> None:
    """`--mode`."""
    command.add_argument(
        "--mode",
        metavar="MODE",
        choices=[mode.value for mode in Mode],
        help="read-only, ask, accept-edits or auto; default: the settings', else ask",
    )


def add_rules(command: argparse.ArgumentParser) -> None:
    """`--allow` and `--deny`, as often as one likes."""
    for name in ("allow", "deny"):
        command.add_argument(
            f"--{name}",
            metavar="RULE",
            action="append",
            default=[],
            help=f"{name} TOOL, TOOL:ARGV-PREFIX or TOOL@PATH-GLOB; may be repeated",
        )


def permission_flags(arguments: argparse.Namespace) -> dict[str, str | None]:
    """The flags of permissions by the keys of the settings; those that may be repeated as a JSON list."""
    repeated = {f"permissions.{name}": getattr(arguments, name, []) for name in ("allow", "deny")}
    return {
        "permissions.mode": arguments.mode,
        **{key: json.dumps(texts) for key, texts in repeated.items() if texts},
    }
