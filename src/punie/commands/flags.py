"""Flags that several commands have, each declared once."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from typing import Any, NoReturn, TypeAlias

from punie.domain.permission.rules import Mode
from punie.mechanics.nearest import did_you_mean

# argparse gives the type of add_subparsers() no public name.
Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]


class CommandParser(argparse.ArgumentParser):
    """A parser of a command line, whose errors name what a person may have meant, and the help.

    Words that no parser knows are an error of the innermost command. A command that needs an action and is given
    nothing prints its help to stderr.
    """

    _has_actions = False
    rest: str | None = None
    """The value that the words after `--` become, as they are."""

    def add_subparsers(self, **named: Any) -> Any:
        """See `argparse.ArgumentParser.add_subparsers`."""
        self._has_actions = True
        return super().add_subparsers(**named)

    def parse_known_args(  # pyright: ignore[reportIncompatibleMethodOverride] - the same three forms, in one
        self, args: Any = None, namespace: Any = None
    ) -> tuple[Any, list[str]]:
        """See `argparse.ArgumentParser.parse_known_args`; nothing is left over."""
        words = sys.argv[1:] if args is None else list(args)
        if self._has_actions and not words:
            self.print_help(sys.stderr)
            self.exit(2)
        first = words[0].partition("=")[0] if words else ""
        if self._has_actions and first.startswith("-") and first not in self._option_string_actions:
            self._unrecognized(words[:1], " Flags of a command go behind its name.")
        if self.rest is not None and "--" in words:
            at = words.index("--")
            words, rest = words[:at], words[at + 1 :]
            self.set_defaults(**{self.rest: rest})
        found, unknown = super().parse_known_args(words, namespace)
        if unknown:
            is_text = not any(word.startswith("--") for word in unknown) and not all(map(_is_flag, unknown))
            self._unrecognized(unknown, self._about_words() if is_text else "")
        return found, unknown

    def _about_words(self) -> str:
        if self.rest is not None:
            return " A command goes behind `--`."
        if any(not action.option_strings for action in self._actions):
            return " Words that belong together need quotes."
        return f" {self.prog} takes flags, and no other words."

    def _unrecognized(self, unknown: Sequence[str], hint: str) -> NoReturn:
        """Name the words that are not understood with the flag that was meant, or else with the hint."""
        flag = next((word.partition("=")[0] for word in unknown if word.startswith("-")), "")
        near = (self._meant(flag) or did_you_mean(flag, self._option_string_actions, 0.7)) if flag else ""
        self.error(f"unrecognized: {' '.join(unknown)}.{near or hint}")

    def _meant(self, word: str) -> str:
        from punie.commands.other_words import meant  # for a mistyped line alone

        return meant(word, self._option_string_actions, is_command=" " not in self.prog)

    def error(self, message: str) -> NoReturn:
        """Write the usage and the error to stderr, and exit with code 2."""
        from punie.domain.values.display import display_safe

        self.print_usage(sys.stderr)
        said = display_safe(message).rstrip(".")
        end = "" if said.endswith("?") else "."
        self.exit(2, f"{self.prog}: {said}{end} `{self.prog} --help` describes it all.\n")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            there = [str(choice) for choice in action.choices]
            near = (self._meant(value) if " " not in self.prog else "") or did_you_mean(value, there)
            what = f"there is no {value!r}.{near} There are {', '.join(there)}."
            raise argparse.ArgumentError(action, what)


def _is_flag(word: str) -> bool:
    return word.startswith("-")


def new_command(commands: Commands, name: str, help_text: str, run: str, *first: str) -> argparse.ArgumentParser:
    """A new command; its flags are added to the parser that is returned.

    `run` is a function below `punie.commands`, such as `ask.run:run_ask`, whose module is imported when the command
    runs. The function is called with `first` and with each flag as a keyword argument, and returns the exit code.
    """
    command = commands.add_parser(name, allow_abbrev=False, help=help_text)
    command.set_defaults(run=run, first=first)
    return command


def takes_rest(command: argparse.ArgumentParser, name: str) -> None:
    """Have the words after `--` become that value, whatever they look like; without `--` it has its default."""
    if isinstance(command, CommandParser):
        command.rest = name


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


LAST = "last"
"""The word for the last session of this directory, in place of an id."""


def add_going_on(command: argparse.ArgumentParser) -> None:
    """`--continue` and `--session`."""
    which = command.add_mutually_exclusive_group()
    help_text = "go on with the last session of this directory"
    which.add_argument("--continue", dest="session", action="store_const", const=LAST, help=help_text)
    help_text = "go on with that session, or with the `last` one of this directory (see: punie sessions list)"
    which.add_argument("--session", metavar="ID", help=help_text)


def settings_flags(
    *, model: str | None = None, mode: str | None, allow: Sequence[str] = (), deny: Sequence[str] = ()
) -> dict[str, str | None]:
    """These flags by the keys of the settings, as `load_settings` takes them; rules as a JSON list."""
    rules = {"permissions.allow": allow, "permissions.deny": deny}
    given = {key: json.dumps(texts) for key, texts in rules.items() if texts}
    return {"model": model, "permissions.mode": mode, **given}
