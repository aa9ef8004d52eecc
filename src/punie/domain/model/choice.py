"""Which model works in a session and how hard it thinks, and what a person may choose instead."""

from __future__ import annotations

from enum import StrEnum

from attrs import frozen

DIRECT = "direct"
"""The name that means no model at all (docs/interfaces.md)."""

OF_FILES = ("script:", "gguf:")
"""How the names of models begin that are files; the rest of such a name is a path."""


class Effort(StrEnum):
    """How hard a model thinks before it answers, where it can be told."""

    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"


@frozen
class ModelChoice:
    """What a session was left with; without an effort its model's own default."""

    model: str
    effort: Effort | None = None


@frozen
class ModelMenu:
    """What a person may choose from. `models` has the one in use; `efforts` is empty where the model has none.

    It grows: what the provider offers, and whether the model thinks, is found out once a session is open.
    """

    choice: ModelChoice = ModelChoice(DIRECT)
    models: tuple[str, ...] = (DIRECT,)
    efforts: tuple[Effort, ...] = ()
