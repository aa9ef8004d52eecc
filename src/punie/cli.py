"""The command line. Only the module of the chosen command is imported."""

from __future__ import annotations

import argparse
import gc
import signal
import sys
from collections.abc import Sequence
from functools import partial
from importlib import import_module
from typing import cast

from punie import __version__
from punie.commands.flags import CommandParser
from punie.mechanics.output import exit_code_with_loss, guard_streams

COMMANDS = (
    "setup",
    "doctor",
    "acp",
    "serve",
    "ask",
    "chat",
    "demo",
    "ide",
    "usage",
    "tools",
    "pipelines",
    "servers",
    "permissions",
    "sessions",
    "turns",
    "state",
    "changes",
    "undo",
    "trace",
    "config",
    "uninstall",
    "completion",
)
"""The commands in the order of `punie --help`; each is the module `punie.commands.NAME.command`."""

WITH_ALL = "completion"
"""The command that describes all others."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code. Wrong usage exits with code 2, as argparse does."""
    if argv is not None:
        return _run(argv)
    gc.set_threshold(50_000, 50)  # as in `collect_rarely`: an IDE waits for each collection while modules load
    guard_streams()
    try:
        return exit_code_with_loss(_run(sys.argv[1:]))
    except KeyboardInterrupt:  # while a command was loaded; one that runs takes it as its own
        return 128 + signal.SIGINT
    except SystemExit as end:  # argparse leaves this way
        raise SystemExit(exit_code_with_loss(cast("int", end.code))) from None


def _run(words: Sequence[str]) -> int:
    chosen = words[0] if words and words[0] in COMMANDS and words[0] != WITH_ALL else None
    whole = parser(chosen)
    flags = vars(whole.parse_args(words))
    flags.pop("action", None)
    if flags.pop("command") == WITH_ALL:
        flags["parser"] = whole
    module, _, function = flags.pop("run").partition(":")
    command = partial(getattr(import_module(f"punie.commands.{module}"), function), *flags.pop("first"), **flags)
    exit_code: int = import_module("punie.commands.running").ended(command)
    return exit_code


def parser(only: str | None = None) -> argparse.ArgumentParser:
    """All commands with their flags, or the one command `only`, since an IDE waits while modules load."""
    whole = CommandParser(
        prog="punie",
        allow_abbrev=False,
        description="A coding agent whose tool runtime is your IDE.",
        epilog="Begin with `punie setup model`; then `punie setup jetbrains` or `punie setup zed` for the IDE, or "
        '`punie ask "..."` here.',
    )
    whole.add_argument("--version", action="version", version=f"punie {__version__}")
    commands = whole.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name in COMMANDS if only is None else (only,):
        import_module(f"punie.commands.{name}.command").add(commands)
    return whole
