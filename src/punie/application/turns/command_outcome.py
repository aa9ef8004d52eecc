"""What becomes of a prompt once it was looked at for a slash command."""

from __future__ import annotations

from typing import TypeAlias

from attrs import frozen

from punie.domain.session.turn import StopReason
from punie.domain.values.content import Prompt


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
