"""`punie doctor`: whether all that a session needs is there."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from punie.commands.flags import new_command

if TYPE_CHECKING:
    from punie.commands.flags import Commands


def add(commands: Commands) -> None:
    """Declare the command with its flags."""
    doctor = new_command(commands, "doctor", "check all that a session needs, and say what to do", _run)
    doctor.add_argument("--json", action="store_true", help="print JSON, for programs")
    doctor.add_argument("--cwd", metavar="DIR", default=".", help="the project's directory (default: this one)")
    doctor.add_argument("--offline", action="store_true", help="ask nobody over a network: no model, no HTTP server")


def _run(arguments: argparse.Namespace) -> int:
    from punie.commands.doctor.run import run_doctor

    return run_doctor(as_json=arguments.json, cwd=arguments.cwd, offline=arguments.offline)
