"""The command line: arguments in, exit code out. Nothing heavy is imported before a command was chosen."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from punie import __version__

if TYPE_CHECKING:
    # argparse gives the type of add_subparsers() no public name.
    Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; gives its exit code. Wrong usage leaves with exit code 2, as argparse does."""
    arguments = _parser().parse_args(argv)
    if arguments.command == "acp":
        from punie.bootstrap.acp_mode import run_acp

        return run_acp(model=arguments.model, log_file=arguments.log_file)
    if arguments.command == "demo":
        return _demo(arguments)
    from punie.bootstrap.ask_mode import run_ask

    return run_ask(model=arguments.model, as_json=arguments.json, cwd=arguments.cwd, prompt=arguments.prompt)


def _demo(arguments: argparse.Namespace) -> int:
    import anyio

    from punie.bootstrap.demo import run_demo

    run = partial(
        run_demo,
        project=arguments.project,
        model=arguments.model,
        interactive=arguments.interactive,
        in_place=arguments.in_place,
    )
    return anyio.run(run)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="punie", allow_abbrev=False, description="A coding agent whose tool runtime is your IDE."
    )
    parser.add_argument("--version", action="version", version=f"punie {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    _add_acp(commands)
    _add_ask(commands)
    _add_demo(commands)
    return parser


def _add_model(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--model", metavar="M", help="provider:name, script:FILE.json, or direct (no model); default: the settings'"
    )


def _add_acp(commands: Commands) -> None:
    acp = commands.add_parser("acp", allow_abbrev=False, help="serve an IDE over ACP on stdin and stdout")
    _add_model(acp)
    acp.add_argument("--log-file", metavar="F", help="write the log there, rotated, instead of to stderr")


def _add_ask(commands: Commands) -> None:
    ask = commands.add_parser("ask", allow_abbrev=False, help="run one prompt on this machine, without an IDE")
    _add_model(ask)
    ask.add_argument("--json", action="store_true", help="print events as JSON, one a line")
    ask.add_argument("--cwd", metavar="DIR", default=".", help="the project's directory (default: this one)")
    ask.add_argument("prompt", metavar="PROMPT")


def _add_demo(commands: Commands) -> None:
    demo = commands.add_parser(
        "demo", allow_abbrev=False, help="play the whole thing on this machine: a small IDE, its tools, a prompt"
    )
    _add_model(demo)
    demo.add_argument("--project", metavar="DIR", help="the project to work on (default: this repository)")
    demo.add_argument("--interactive", action="store_true", help="answer the questions yourself")
    demo.add_argument("--in-place", action="store_true", help="work on the project itself, not on a copy")
