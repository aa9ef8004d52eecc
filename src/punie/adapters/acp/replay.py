"""A kept session as its client sees it: the log as updates, and the list of sessions."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

from attrs import evolve

from punie.adapters.acp.blocks import encode_block
from punie.adapters.acp.updates import encode_update
from punie.domain.session.events import ContextUsed, ModeChanged, ModelChanged, TitleChanged, ToolCallUpdated
from punie.domain.session.log import (
    LoggedEvent,
    PromptAccepted,
    PromptFilled,
    SessionBegun,
    SessionPage,
    SessionSummary,
)
from punie.domain.values.content import TerminalView, Text

GONE = Text("(the terminal is gone)")

NOT_SHOWN_AGAIN = (SessionBegun, PromptFilled, ContextUsed, ModeChanged, ModelChanged, TitleChanged)
"""What a client is told otherwise when it takes up a session, or never was."""


def encode_logged(event: LoggedEvent) -> Iterable[dict[str, object]]:
    """The updates that show one event again; none for what a client is told otherwise, or never was."""
    match event:
        case PromptAccepted(turn_id, prompt):
            # The id is that of its turn, as in v2: the same each time, and of all that was said in one prompt.
            said: dict[str, object] = {"sessionUpdate": "user_message_chunk", "messageId": turn_id}
            return tuple({**said, "content": encode_block(block)} for block in prompt.blocks)
        case _ if isinstance(event, NOT_SHOWN_AGAIN):
            return ()
        case ToolCallUpdated():
            update = encode_update(without_terminals(event))
        case _:
            update = encode_update(event)
    return () if update is None else (update,)


def without_terminals(event: ToolCallUpdated) -> ToolCallUpdated:
    """A terminal of an earlier process is gone: clients refuse an update that shows it."""
    if event.content is None or not any(isinstance(part, TerminalView) for part in event.content):
        return event
    return evolve(event, content=tuple(GONE if isinstance(part, TerminalView) else part for part in event.content))


def encode_page(page: SessionPage) -> dict[str, object]:
    """The answer to `session/list`."""
    answer: dict[str, object] = {"sessions": [_encode_summary(summary) for summary in page.sessions]}
    return answer if page.next_cursor is None else {**answer, "nextCursor": page.next_cursor}


def _encode_summary(summary: SessionSummary) -> dict[str, object]:
    told: dict[str, object] = {
        "sessionId": summary.id,
        "cwd": summary.cwd,
        "updatedAt": datetime.fromtimestamp(summary.updated_at, UTC).isoformat(),
    }
    if summary.additional_directories:
        told["additionalDirectories"] = list(summary.additional_directories)
    return told if summary.title is None else {**told, "title": summary.title}
