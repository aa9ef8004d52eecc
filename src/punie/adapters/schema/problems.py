"""Validation errors in words for a model: the field, and what was expected there."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jsonschema_rs import ValidationError

PROBLEM_LIMIT_CHARS = 200
_BRANCHES = 4


def in_words(error: ValidationError) -> str:
    """One sentence: the path of the field, and what was expected; without what the model wrote there."""
    what = _expected(error)
    where = _field(error.instance_path)
    return shortened(f"{where}: {what}" if where else what)


def shortened(text: str) -> str:
    """The text, cut where it is longer than a problem may be."""
    return text if len(text) <= PROBLEM_LIMIT_CHARS else text[: PROBLEM_LIMIT_CHARS - 4] + " ..."


def _field(path: list[str | int]) -> str:
    shown = ""
    for part in path:
        if isinstance(part, int):
            shown += f"[{part}]"
        else:
            shown += f".{part}" if shown else part
    # The end of a long path is what tells fields apart.
    return shown if len(shown) <= 100 else "..." + shown[-97:]


def _expected(error: ValidationError) -> str:
    kind = error.kind
    branches = getattr(kind, "context", None)
    if kind.name in {"anyOf", "oneOf"} and branches:
        options = [_expected(branch[0]) for branch in branches[:_BRANCHES] if branch]
        return "none of the alternatives fits: " + "; or ".join(options)
    if kind.name == "required":
        return f"{getattr(kind, 'property', 'a property')!r} is required"
    return error.message.partition("\n")[0]
