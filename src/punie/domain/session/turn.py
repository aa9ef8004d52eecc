"""One turn: a prompt, the work on it, and why it ended (ACP: prompt turn)."""

from __future__ import annotations

from enum import StrEnum

from attrs import frozen

from punie.domain.model.choice import Effort
from punie.domain.model.compaction import DEFAULT_SHARE
from punie.domain.model.usage import Usage
from punie.domain.values.content import Prompt


class StopReason(StrEnum):
    """ACP's stop reasons (A-08)."""

    END_TURN = "end_turn"
    MAX_TOKENS = "max_tokens"
    MAX_TURN_REQUESTS = "max_turn_requests"
    REFUSAL = "refusal"
    CANCELLED = "cancelled"


@frozen
class TurnLimits:
    """Bounds of one turn: model requests, after which it stops with `max_turn_requests`.

    Beyond `compact_above_tokens` an engine makes its history shorter before it asks its model; None where it never
    does so unasked. `compact_share` is the same as a part of the model's context, whichever model that is by then.
    """

    max_requests: int = 200
    compact_share: float = DEFAULT_SHARE
    compact_above_tokens: int | None = None


@frozen
class Turn:
    """What an engine is asked to do: answer `prompt` under `instructions`. `id` is unique in the process.

    `effort` is how hard its model shall think, where it can be told; None is the model's own default.
    """

    id: str
    session_id: str
    prompt: Prompt
    instructions: str = ""
    limits: TurnLimits = TurnLimits()
    effort: Effort | None = None


@frozen
class TurnReport:
    """How a turn ended, and what it used."""

    stop_reason: StopReason
    usage: Usage = Usage()
