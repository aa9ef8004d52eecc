"""The model of a session, its thinking level, and the others that a person may choose."""

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
    """The model that a session has chosen last; without an effort the model's own default."""

    model: str
    effort: Effort | None = None


@frozen
class ModelMenu:
    """The models and levels to choose from. `models` has the one in use; `efforts` is empty where the model has none.

    A session's menu grows once it is open: by the provider's other models, and by the levels of the loaded model.
    """

    choice: ModelChoice = ModelChoice(DIRECT)
    models: tuple[str, ...] = (DIRECT,)
    efforts: tuple[Effort, ...] = ()
