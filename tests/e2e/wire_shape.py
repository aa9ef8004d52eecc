"""The shape of a turn on the wire without ids and words: what must be the same whichever engine played it."""

from __future__ import annotations

from typing import Any

from tests.e2e.raw_client import RawClient
from tests.e2e.turns import Turn


def shape(turn: Turn, ide: RawClient) -> list[Any]:
    """Cards with statuses, kinds, contents and inputs; requests with their methods; the answer's chunks as one."""
    result: list[Any] = []
    for frame in ide.log.frames[turn.first : turn.last + 1]:
        if frame.sender == "agent" and frame.is_request:
            result.append(("request", frame.method, sorted(frame.params)))
        elif frame.sender == "agent" and frame.method == "session/update":
            update = frame.params["update"]
            kind = update["sessionUpdate"]
            if kind in {"tool_call", "tool_call_update"}:
                contents = [item["type"] for item in update.get("content") or []]
                result.append(
                    (kind, sorted(update), update.get("status"), update.get("kind"), contents, update.get("rawInput"))
                )
            elif kind == "agent_message_chunk" and (not result or result[-1] != kind):
                result.append(kind)
    return [*result, turn.stop]
