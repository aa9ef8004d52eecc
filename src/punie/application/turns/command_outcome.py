"""The outcome of looking for a slash command in a prompt."""

from __future__ import annotations

from typing import TypeAlias

from attrs import frozen

from punie.domain.session.turn import StopReason
from punie.domain.values.content import Prompt


@frozen
class Answered:
    """The command is done; `text` (Markdown) is the answer, and the model is not asked."""

    text: str
    stop_reason: StopReason = StopReason.END_TURN


@frozen
class ForTheModel:
    """The model gets this prompt, which may differ from the typed one."""

    prompt: Prompt


Outcome: TypeAlias = Answered | ForTheModel
