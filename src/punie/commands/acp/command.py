"""`punie acp`: the agent, for an IDE."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from punie.commands.flags import add_mode, add_model, new_command

if TYPE_CHECKING:
    from punie.commands.flags import Commands


def add(commands: Commands) -> None:
    """Declare the command with its flags."""
    acp = new_command(commands, "acp", "serve an IDE over ACP on stdin and stdout", _run)
    add_model(acp)
    add_mode(acp)
    acp.add_argument("--log-file", metavar="F", help="write the log there, rotated, instead of to stderr")
    acp.add_argument(
        "--setup-model",
        action="store_true",
        help="choose a model at this terminal instead, as `punie setup model` does",
    )
    acp.add_argument("--acp-v2", action="store_true", help="speak ACP v2, a draft, with clients that ask for it")


def _run(arguments: argparse.Namespace) -> int:
    if arguments.setup_model:
        from punie.commands.setup.model import ModelFlags, run_model_setup

        return run_model_setup(ModelFlags(proposed=arguments.model))
    from punie.commands.acp.run import run_acp

    return run_acp(model=arguments.model, mode=arguments.mode, log_file=arguments.log_file, draft=arguments.acp_v2)
