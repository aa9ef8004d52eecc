"""Flags that several commands have, each declared once."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from typing import TypeAlias

from punie.domain.permission.rules import Mode

# argparse gives the type of add_subparsers() no public name.
Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]


def new_command(commands: Commands, name: str, help_text: str, run: str, *first: str) -> argparse.ArgumentParser:
    """A new command; its flags are added to the parser that is returned.

    `run` is a function below `punie.commands`, such as `ask.run:run_ask`, whose module is imported when the command
    runs. The function is called with `first` and with each flag as a keyword argument, and returns the exit code.
    """
    command = commands.add_parser(name, allow_abbrev=False, help=help_text)
    command.set_defaults(run=run, first=first)
    return command


def new_actions(commands: Commands, name: str, help_text: str) -> Commands:
    """A new command that has actions, such as `punie tools list`; the actions are added to what is returned."""
    command = commands.add_parser(name, allow_abbrev=False, help=help_text)
    return command.add_subparsers(dest="action", required=True, metavar="ACTION")


def new_action(
    actions: Commands, name: str, help_text: str, run: str, *first: str, as_json: bool = False, cwd: bool = False
) -> argparse.ArgumentParser:
    """A new action, as `new_command` makes a command, with `--json` and `--cwd` where they are asked for."""
    action = new_command(actions, name, help_text, run, *first)
    if as_json:
        add_json(action)
    if cwd:
        add_cwd(action)
    return action


def add_json(command: argparse.ArgumentParser, help_text: str = "print JSON, for programs") -> None:
    """`--json`."""
    command.add_argument("--json", dest="as_json", action="store_true", help=help_text)


def add_cwd(command: argparse.ArgumentParser) -> None:
    """`--cwd`."""
    command.add_argument("--cwd", metavar="DIR", default=".", help="the project's directory (default: this one)")


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
    """`--allow` and `--deny`, each any number of times."""
    for name in ("allow", "deny"):
        command.add_argument(
            f"--{name}",
            metavar="RULE",
            action="append",
            default=[],
            help=f"{name} TOOL, TOOL:ARGV-PREFIX, fetch_page:HOST or TOOL@PATH-GLOB; may be repeated",
        )


def settings_flags(
    *, model: str | None = None, mode: str | None, allow: Sequence[str] = (), deny: Sequence[str] = ()
) -> dict[str, str | None]:
    """These flags by the keys of the settings, as `load_settings` takes them; rules as a JSON list."""
    rules = {"permissions.allow": allow, "permissions.deny": deny}
    given = {key: json.dumps(texts) for key, texts in rules.items() if texts}
    return {"model": model, "permissions.mode": mode, **given}
