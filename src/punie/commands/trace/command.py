"""`punie trace`: a stored session as a page for a browser."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from punie.commands.flags import Commands


def add(commands: Commands) -> None:
    """Declare the command with its flags."""
    trace = commands.add_parser(
        "trace",
        allow_abbrev=False,
        help="a stored session as one HTML page: what happened, when, and what it cost",
    )
    trace.add_argument("session", metavar="SESSION", help="its id, how that begins, or `last`")
    trace.add_argument("--output", metavar="FILE", help="where the page goes (default: punie-trace-SESSION.html here)")
    trace.add_argument("--force", action="store_true", help="write over a file that is no trace")
    trace.add_argument("--open", action="store_true", help="show it in the browser")
    trace.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    from punie.commands.trace.run import run_trace

    return run_trace(given=arguments.session, output=arguments.output, force=arguments.force, in_browser=arguments.open)
