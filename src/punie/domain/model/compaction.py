"""Making a conversation shorter for its model: what was said before is summarised, the latest of it stays whole."""

from __future__ import annotations

from enum import StrEnum

from attrs import frozen

DEFAULT_SHARE = 0.8
"""The part of a model's context beyond which its conversation is made shorter."""


class CompactionStatus(StrEnum):
    """ACP's words for how far a compaction is."""

    IN_PROGRESS = "in_progress"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


@frozen
class CompactionOrder:
    """Somebody wants the conversation shorter now.

    `id` is unique within the session; `keep_in_mind` is what the summary must not lose; `above_tokens` is the size
    beyond which it would be done unasked.
    """

    id: str
    keep_in_mind: str = ""
    above_tokens: int | None = None
