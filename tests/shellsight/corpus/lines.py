"""The two corpora as they stand on disk."""

from __future__ import annotations

import tomllib
from pathlib import Path

from attrs import frozen

MODES = ("read-only", "ask", "accept-edits", "auto")
_FOLDER = Path(__file__).parent


@frozen
class Line:
    """One command line, its class, and the modes it is held to."""

    text: str
    kind: str
    modes: tuple[str, ...]


def _load(name: str, modes: tuple[str, ...]) -> tuple[Line, ...]:
    classes = tomllib.loads((_FOLDER / name).read_text("utf-8"))
    return tuple(
        Line(text, kind, tuple(table.get("modes", modes))) for kind, table in classes.items() for text in table["lines"]
    )


def dangerous() -> tuple[Line, ...]:
    """Lines that never run without a question."""
    return _load("dangerous.toml", MODES)


def everyday() -> tuple[Line, ...]:
    """Lines that should run without one in the mode `ask`."""
    return _load("everyday.toml", ("ask",))
