"""The note about a change of several files that takes a session's changes back, for the process after a killed one."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence

from attrs import astuple

from punie.mechanics.files import read_path
from punie.ports.history import ABSENT, FOLDER, Move

PENDING = "taking-back.json"
_LIMIT_BYTES = 64_000_000


def write_pending(path: str, turn: str, moves: Sequence[Move]) -> None:
    """Write the note, which a power cut leaves whole or not at all. Raises `OSError`."""
    with open(f"{path}.new", "w", encoding="ascii", opener=_private) as file:
        json.dump({"turn": turn, "moves": [astuple(move) for move in moves]}, file)
        file.flush()
        os.fsync(file.fileno())
    os.rename(f"{path}.new", path)


def read_pending(path: str) -> tuple[str, list[Move]]:
    """The turn and the files of a note; none of a damaged one."""
    try:
        found = json.loads(read_path(path, _LIMIT_BYTES) or b"")
        return str(found["turn"]), [Move(*map(str, move)) for move in found["moves"]]
    except (ValueError, TypeError, KeyError):
        return "", []


def in_order(moves: Sequence[Move]) -> list[Move]:
    """Folders that come back first, then files, and folders that go last, the deepest before those around them."""
    made = sorted((move for move in moves if move.to == FOLDER), key=lambda move: move.path)
    gone = sorted((move for move in moves if (move.now, move.to) == (FOLDER, ABSENT)), key=lambda move: move.path)
    between = [move for move in moves if move not in made and move not in gone]
    between.sort(key=lambda move: move.to != ABSENT)  # a file may stand where a folder has to be
    return [
        *[move for move in between if move.to == ABSENT],
        *made,
        *[m for m in between if m.to != ABSENT],
        *gone[::-1],
    ]


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
