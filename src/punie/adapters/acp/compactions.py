"""How a compaction looks to a client that said `session.compaction` (ACP, `compaction_update`)."""

from __future__ import annotations

from punie.domain.model.compaction import CompactionStatus
from punie.domain.session.events import CompactionChanged, CompactionDelta

COMPACTION_EVENTS = (CompactionChanged, CompactionDelta)
"""ACP forbids to send these to any other client."""


def compaction_piece(event: CompactionDelta) -> dict[str, object]:
    """The next piece of the summary."""
    return {
        "sessionUpdate": "compaction_summary_chunk",
        "compactionId": event.compaction_id,
        "content": {"type": "text", "text": event.text},
    }


def compaction_update(event: CompactionChanged) -> dict[str, object]:
    """How far it is; the whole summary takes the place of its pieces, and what failed has none."""
    update: dict[str, object] = {
        "sessionUpdate": "compaction_update",
        "compactionId": event.compaction_id,
        "status": event.status.value,
    }
    if event.summary is not None:
        update["summary"] = [{"type": "text", "text": event.summary}]
    elif event.status in {CompactionStatus.FAILED, CompactionStatus.CANCELLED}:
        update["summary"] = None
    if event.error is not None:
        update["error"] = event.error
    return update
