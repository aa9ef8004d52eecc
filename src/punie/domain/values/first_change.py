"""Where an edit begins: the line that a client shows when it follows the agent."""

from __future__ import annotations

from punie.domain.values.content import Diff

STEP = 4_096
LINE_LIMIT = 2**32 - 1
"""ACP's lines are unsigned numbers of 32 bits."""


def first_changed_line(diff: Diff) -> int | None:
    """The first line of the new text that is not the old one's, from 1; None for a new file and where none differs."""
    old, new = diff.old_text, diff.new_text
    if old is None or old == new:
        return None
    shorter = min(len(old), len(new))
    same = 0
    while same < shorter and old[same : same + STEP] == new[same : same + STEP]:
        same += STEP
    same = min(same, shorter)
    while same < shorter and old[same] == new[same]:
        same += 1
    return min(new.count("\n", 0, same) + 1, LINE_LIMIT)
