"""`python -m tests.durable`: kill servers while turns run that survive them, and measure the price of a step."""

from __future__ import annotations

import argparse
import logging
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

import anyio

from punie.adapters.durable.book import DbosTurnBook, Place
from punie.adapters.local.machine import LocalProcessTable
from punie.ports.turns import StepKind, TurnOrder
from tests.durable.run import load
from tests.postgres_server import is_installed, postgres_server, remove_server


async def _price(place: Place, steps: int) -> float:
    """Milliseconds of a step, beside the log's own write."""
    book = DbosTurnBook(place, LocalProcessTable(), logging.getLogger("tests.durable"))
    taken = await book.begin(TurnOrder("turn-of-the-bench", "session", "/"))
    await taken.took(StepKind.CALL, "first")
    began_s = time.monotonic()
    for _ in range(steps):
        await taken.took(StepKind.CALL, "run_command")
    elapsed_s = time.monotonic() - began_s
    await taken.ended("end_turn")
    await book.aclose()
    return elapsed_s / steps * 1_000


def main() -> int:
    """Run it; the exit code is 1 where anything was wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.durable", description=__doc__)
    parser.add_argument("--sessions", type=int, default=200)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=200, help="measure the price of a step with so many")
    parser.add_argument("--price-alone", action="store_true")
    options = parser.parse_args()
    if not is_installed():
        sys.stderr.write("PostgreSQL is not installed: nothing was run.\n")
        return 1
    with tempfile.TemporaryDirectory(prefix="punie-durable-") as scratch:
        folder, url = Path(scratch), postgres_server().new_database()
        try:
            file = folder / "turns.sqlite"
            for name, place in (("SQLite", Place(None, file)), ("PostgreSQL", Place(url, file))):
                cost_ms = anyio.run(_price, place, options.steps)
                sys.stdout.write(f"a step on {name}: {cost_ms:.1f} ms, one write to DBOS's tables\n")
            if options.price_alone:
                return 0
            run = partial(load, sessions=options.sessions, kills=options.kills, seed=options.seed)
            outcome = anyio.run(run, folder, postgres_server().new_database())
        finally:
            remove_server()
    sys.stdout.write(
        f"{options.sessions} sessions ended after {outcome.kills} kills in {outcome.seconds:.0f} s, with "
        f"{outcome.connections} connections and {outcome.effects} effects; problems: {outcome.problems or 'none'}\n"
    )
    return 1 if outcome.problems else 0


if __name__ == "__main__":
    sys.exit(main())
