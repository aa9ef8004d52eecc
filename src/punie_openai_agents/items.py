"""What the model is reminded of, as the SDK's items: turns, each its prompt and its answers with their results."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, TypeAlias, cast

from agents.models.fake_id import FAKE_RESPONSES_ID

from punie.api import NO_ANSWER, UnreadableSnapshotError

Item: TypeAlias = dict[str, Any]
"""One of the SDK's input items, as JSON has it."""

Group: TypeAlias = list[Item]
"""A prompt, or one answer of the model with the results of all its calls: never cut apart."""

Told: TypeAlias = list[Group]
"""One turn: the group of its prompt, then one for each answer."""

FORMAT: Final = 1
INTERRUPTED: Final = (
    "This call was interrupted before it had a result. Whether it did its work is not known; "
    "look before you call it again."
)
WRITTEN: Final = "written_as"

_NEEDED: Mapping[str, tuple[str, ...]] = {
    "function_call": ("call_id", "name", "arguments"),
    "function_call_output": ("call_id",),
    "message": ("role",),
    "reasoning": (),
}


def user_item(content: str | list[Item]) -> Item:
    """What the person said, or what is told in their place."""
    return {"role": "user", "content": content}


def said_item(text: str) -> Item:
    """What the model said."""
    said: Item = {"type": "output_text", "text": text, "annotations": list[str]()}
    ours = {"id": FAKE_RESPONSES_ID, "type": "message", "role": "assistant", "status": "completed"}
    return {**ours, "content": [said]}


def call_item(call_id: str, name: str, arguments: str) -> Item:
    """A call of the model; `arguments` are JSON."""
    return {"type": "function_call", "call_id": call_id, "name": name, "arguments": arguments}


def result_item(call_id: str, text: str) -> Item:
    """What came of a call."""
    return {"type": "function_call_output", "call_id": call_id, "output": text}


def as_object(value: object, written: str) -> str:
    """Arguments as providers take them back: a JSON object, whatever the model wrote."""
    return written if isinstance(value, dict) else json.dumps({WRITTEN: value} if value != "" else {})


def flat(turns: Iterable[Told]) -> list[Item]:
    """All items in order."""
    return [item for turn in turns for group in turn for item in group]


def whole(group: Group) -> Group:
    """The group with a result for every call: those that have none were interrupted."""
    answered = {item["call_id"] for item in group if item.get("type") == "function_call_output"}
    calls = [item["call_id"] for item in group if item.get("type") == "function_call"]
    missing = [result_item(call_id, INTERRUPTED) for call_id in calls if call_id not in answered]
    if not missing:
        return group
    places = [place for place, item in enumerate(group) if item.get("type", "").startswith("function_call")]
    after = places[-1] + 1  # before pictures that came with other results
    return [*group[:after], *missing, *group[after:]]


def closed(turn: Told) -> Told:
    """The turn as the next one can follow it: no call without its result, no prompt without an answer."""
    groups = [whole(group) for group in turn if group]
    unanswered = bool(groups) and groups[-1][-1].get("role") == "user"
    return [*groups, [said_item(NO_ANSWER)]] if unanswered else groups


def dump(turns: Sequence[Told]) -> bytes:
    """The turns as JSON."""
    text = json.dumps({"format": FORMAT, "turns": turns}, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "surrogatepass")


def parse(snapshot: bytes) -> list[Told]:
    """The turns of a snapshot. Raises `UnreadableSnapshotError` for bytes that are none."""
    try:
        value: object = json.loads(snapshot)
    except (ValueError, RecursionError) as error:
        raise UnreadableSnapshotError from error
    if not isinstance(value, dict):
        raise UnreadableSnapshotError
    fields = cast("dict[str, object]", value)
    turns = fields.get("turns")
    if fields.get("format") != FORMAT or not _are_turns(turns):
        raise UnreadableSnapshotError
    return [closed(turn) for turn in cast("list[Told]", turns)]


def _are_turns(value: object) -> bool:
    return _are(value, lambda turn: _are(turn, lambda group: _are(group, _is_item)))


def _are(value: object, kind: Callable[[object], bool]) -> bool:
    """Whether it is a list of that kind."""
    return isinstance(value, list) and all(map(kind, cast("list[object]", value)))


def _is_item(value: object) -> bool:
    if not isinstance(value, dict):
        return False
    item = cast("dict[str, object]", value)
    if "type" not in item:
        return item.get("role") in {"user", "assistant"} and isinstance(item.get("content"), (str, list))
    needed = _NEEDED.get(str(item["type"]))
    return needed is not None and all(isinstance(item.get(key), str) for key in needed)
