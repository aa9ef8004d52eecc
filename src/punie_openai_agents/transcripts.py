"""What another engine, or a turn whose process died, left behind, as turns of the SDK's items."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from punie.api import (
    AgentSaid,
    PersonSaid,
    ToolOutcome,
    ToolUsed,
    Transcript,
    TurnsLeftOut,
    TurnStoppedShort,
    encodable,
    thaw_object,
)
from punie_openai_agents.items import Group, Told, call_item, closed, result_item, said_item, user_item
from punie_openai_agents.prompts import user_content
from punie_openai_agents.tools import failed_text

_UNFIT = re.compile(r"[^A-Za-z0-9_-]")


def turns_of(transcript: Transcript) -> list[Told]:
    """Turns that any provider takes: each call has its result, and one that broke off says so."""
    turns: list[Told] = []
    for item in transcript:
        match item:
            case PersonSaid(prompt):
                turns.append([[user_item(user_content(prompt))]])
            case AgentSaid(text):
                _add(turns, [said_item(encodable(text))])
            case ToolUsed():
                _add(turns, _call_and_result(item))
            case TurnStoppedShort(how):
                _add(turns, [said_item(f"[This turn {how}.]")])
            case TurnsLeftOut():
                pass  # a model that is told of them asks what was in them
    return [closed(turn) for turn in turns]


def _add(turns: list[Told], group: Group) -> None:
    """Add what the model said or did next: what it did right after it had said something is of that answer."""
    if not turns:
        turns.append([])
    before = turns[-1][-1] if turns[-1] else []
    if not before or before[-1].get("type") != "message":
        turns[-1].append(group)
    elif group[0].get("type") == "message":
        before[-1]["content"] += group[0]["content"]
    else:
        before += group


def _call_and_result(used: ToolUsed) -> Group:
    name = _UNFIT.sub("_", used.tool)[:64] or "tool"  # a model may have called anything, and providers check names
    arguments = thaw_object(used.arguments) if isinstance(used.arguments, Mapping) else {}
    failed = used.outcome in {ToolOutcome.FAILED, ToolOutcome.CANCELLED}
    text = encodable(used.text)
    return [
        call_item(used.call_id, name, json.dumps(arguments)),
        result_item(used.call_id, failed_text(text) if failed else text),
    ]
