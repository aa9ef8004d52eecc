"""The command line. Only the module of the chosen command is imported."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module

from punie import __version__

COMMANDS = (
    "setup",
    "doctor",
    "acp",
    "serve",
    "ask",
    "demo",
    "usage",
    "tools",
    "pipelines",
    "servers",
    "permissions",
    "sessions",
    "trace",
    "config",
    "completion",
)
"""The commands in the order of `punie --help`; each is the module `punie.commands.NAME.command`."""

WITH_ALL = "completion"
"""The command that describes all others."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code. Wrong usage exits with code 2, as argparse does."""
    words = sys.argv[1:] if argv is None else argv
    chosen = words[0] if words and words[0] in COMMANDS and words[0] != WITH_ALL else None
    whole = parser(chosen)
    flags = vars(whole.parse_args(words))
    flags.pop("action", None)
    if flags.pop("command") == WITH_ALL:
        flags["parser"] = whole
    module, _, function = flags.pop("run").partition(":")
    exit_code: int = getattr(import_module(f"punie.commands.{module}"), function)(*flags.pop("first"), **flags)
    return exit_code


def parser(only: str | None = None) -> argparse.ArgumentParser:
    """All commands with their flags, or the one command `only`, since an IDE waits while modules load."""
    whole = argparse.ArgumentParser(
        prog="punie", allow_abbrev=False, description="A coding agent whose tool runtime is your IDE."
    )
    whole.add_argument("--version", action="version", version=f"punie {__version__}")
    commands = whole.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name in COMMANDS if only is None else (only,):
        import_module(f"punie.commands.{name}.command").add(commands)
    return whole
