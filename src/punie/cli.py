"""The command line: arguments in, exit code out. Nothing heavy is imported before a command was chosen."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from punie import __version__
from punie.commands import (
    acp,
    ask,
    completion,
    config,
    demo,
    doctor,
    permissions,
    pipelines,
    serve,
    servers,
    sessions,
    setup,
    tools,
    trace,
    usage,
)

COMMANDS = (
    setup,
    doctor,
    acp,
    serve,
    ask,
    demo,
    usage,
    tools,
    pipelines,
    servers,
    permissions,
    sessions,
    trace,
    config,
    completion,
)
"""In the order in which `punie --help` tells them."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; gives its exit code. Wrong usage leaves with exit code 2, as argparse does."""
    arguments = parser().parse_args(argv)
    exit_code: int = arguments.run(arguments)
    return exit_code


def parser() -> argparse.ArgumentParser:
    """All commands with their flags."""
    whole = argparse.ArgumentParser(
        prog="punie", allow_abbrev=False, description="A coding agent whose tool runtime is your IDE."
    )
    whole.add_argument("--version", action="version", version=f"punie {__version__}")
    commands = whole.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for command in COMMANDS:
        command.add(commands)
    whole.set_defaults(parser=whole)  # for the command that describes them all
    return whole
