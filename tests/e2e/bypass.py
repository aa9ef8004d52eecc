"""One turn of an IDE that is to be got around, and how its calls ended."""

from __future__ import annotations

from pathlib import Path

from tests.e2e.raw_client import RawClient
from tests.e2e.turns import Turn


async def one_turn(ide: RawClient, project: Path) -> Turn:
    session = await ide.open(project)
    turn = await ide.prompt(session)
    assert turn.stop == "end_turn"
    return turn


def outcomes(turn: Turn) -> set[str]:
    return {card.status for card in turn.cards}
