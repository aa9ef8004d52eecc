"""The command line: arguments in, exit code out. Nothing heavy is imported before a command was chosen."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from punie import __version__
from punie.commands.acp import command as acp
from punie.commands.ask import command as ask
from punie.commands.completion import command as completion
from punie.commands.config import command as config
from punie.commands.demo import command as demo
from punie.commands.doctor import command as doctor
from punie.commands.permissions import command as permissions
from punie.commands.pipelines import command as pipelines
from punie.commands.serve import command as serve
from punie.commands.servers import command as servers
from punie.commands.sessions import command as sessions
from punie.commands.setup import command as setup
from punie.commands.tools import command as tools
from punie.commands.trace import command as trace
from punie.commands.usage import command as usage

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
