"""What becomes of a prompt once it was looked at for a slash command."""

from __future__ import annotations

from typing import TypeAlias

from attrs import frozen

from punie.domain.content import Prompt
from punie.domain.turn import StopReason


@frozen
class Answered:
    """The command is done, and `text` (Markdown) is all there is to say; the model is not asked."""

    text: str
    stop_reason: StopReason = StopReason.END_TURN


@frozen
class ForTheModel:
    """The model gets this prompt, which need not be what was typed."""

    prompt: Prompt


Outcome: TypeAlias = Answered | ForTheModel
