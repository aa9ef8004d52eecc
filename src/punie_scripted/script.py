"""The script file: from JSON to items, every fault found when it is read and named by turn and item."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NoReturn, TypeAlias

from attrs import frozen

from punie.api import EMPTY_OBJECT, EngineErrorKind, JsonObject, JsonValue, NotJsonError, freeze, json_type

SIZE_LIMIT_BYTES = 64 * 1024 * 1024
"""A larger file is refused: it would stay in memory as long as the session."""

MAX_TOKENS = "max_tokens"
FAIL_KINDS = frozenset({kind.value for kind in EngineErrorKind} - {EngineErrorKind.CONFIGURATION.value} | {MAX_TOKENS})


class ScriptError(ValueError):
    """The script cannot be played; the sentence says where and why."""


@frozen
class Say:
    """One piece of the answer."""

    text: str


@frozen
class Think:
    """One piece of reasoning."""

    text: str


@frozen
class PlannedCall:
    """One tool call; `arguments` may hold `"$result.KEY"` at any depth."""

    name: str
    arguments: JsonValue


@frozen
class CallTools:
    """Calls that run at once; the item waits for all of them."""

    calls: tuple[PlannedCall, ...]


@frozen
class SayResult:
    """Say what the last call, or all calls of the last parallel item, answered."""


@frozen
class SayTools:
    """Say the offered tools as JSON."""


@frozen
class Sleep:
    """Do nothing for so long."""

    duration_s: float


@frozen
class Spend:
    """Tokens that one make-believe request used."""

    input_tokens: int
    output_tokens: int


@frozen
class Fail:
    """End the turn as a failing provider would."""

    kind: str
    message: str


Item: TypeAlias = Say | Think | CallTools | SayResult | SayTools | Sleep | Spend | Fail
Turns: TypeAlias = tuple[tuple[Item, ...], ...]


def load_script(path: Path) -> Turns:
    """Read and check a script file. Raises `ScriptError`, whose sentence does not name the file."""
    try:
        size_bytes = path.stat().st_size
        if not path.is_file():
            raise ScriptError("it is not a regular file")
        if size_bytes > SIZE_LIMIT_BYTES:
            raise ScriptError(f"it has {size_bytes} bytes, more than the {SIZE_LIMIT_BYTES} allowed")
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise ScriptError(_reason(error)) from error
    return parse_script(text)


def parse_script(text: str) -> Turns:
    """The turns of a script. Raises `ScriptError` naming turn and item, both counted from 1."""
    try:
        document = freeze(json.loads(text, parse_constant=_no_constant))
    except NotJsonError as error:
        raise ScriptError(str(error)) from error
    except (ValueError, RecursionError) as error:
        raise ScriptError(f"it is not JSON ({error})") from error
    turns = document.get("turns") if isinstance(document, Mapping) else None
    if not isinstance(turns, tuple):
        raise ScriptError('it must be an object {"turns": [[item, ...], ...]}')
    return tuple(_turn(number, turn) for number, turn in enumerate(turns, start=1))


def _turn(number: int, turn: JsonValue) -> tuple[Item, ...]:
    if not isinstance(turn, tuple):
        raise ScriptError(f"turn {number} is {json_type(turn)}, expected an array of items")
    items: list[Item] = []
    for position, item in enumerate(turn, start=1):
        try:
            items.append(_item(item))
        except ScriptError as error:
            raise ScriptError(f"turn {number}, item {position}: {error}") from error
    return tuple(items)


def _item(item: JsonValue) -> Item:
    if not isinstance(item, Mapping) or len(item) != 1:
        raise ScriptError('expected an object with exactly one key, such as {"text": "..."}')
    ((key, value),) = item.items()
    reader = _READERS.get(key)
    if reader is None:
        raise ScriptError(f"unknown item {key!r}, known are {', '.join(_READERS)}")
    return reader(value)


def _parallel(value: JsonValue) -> Item:
    if not isinstance(value, tuple) or not value:
        raise ScriptError('"parallel" must be a non-empty array of calls')
    return CallTools(tuple(_planned("parallel", call) for call in value))


def _planned(where: str, value: JsonValue) -> PlannedCall:
    # In `parallel` a call may be written with or without its own {"call": ...} around it.
    if where == "parallel" and isinstance(value, Mapping) and set(value) == {"call"}:
        value = value["call"]
    fields = _fields(where, value, required=("name",), optional=("arguments",))
    return PlannedCall(_string(f"{where}.name", fields["name"]), fields.get("arguments", EMPTY_OBJECT))


def _sleep(value: JsonValue) -> Item:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value) or value < 0:
        raise ScriptError('"sleep_s" must be a number of seconds, zero or more')
    return Sleep(float(value))


def _usage(value: JsonValue) -> Item:
    fields = _fields("usage", value, optional=("inputTokens", "outputTokens"))
    return Spend(*(_count(name, fields.get(name, 0)) for name in ("inputTokens", "outputTokens")))


def _fail(value: JsonValue) -> Item:
    fields = _fields("fail", value, required=("kind",), optional=("message",))
    kind = _string("fail.kind", fields["kind"])
    if kind not in FAIL_KINDS:
        raise ScriptError(f'"fail.kind" is {kind!r}, expected one of {", ".join(sorted(FAIL_KINDS))}')
    return Fail(kind, _string("fail.message", fields.get("message", f"The script failed this turn ({kind}).")))


_READERS: Mapping[str, Callable[[JsonValue], Item]] = {
    "text": lambda value: Say(_string("text", value)),
    "thought": lambda value: Think(_string("thought", value)),
    "call": lambda value: CallTools((_planned("call", value),)),
    "parallel": _parallel,
    "result": lambda value: _if_true("result", value, SayResult()),
    "tools": lambda value: _if_true("tools", value, SayTools()),
    "sleep_s": _sleep,
    "usage": _usage,
    "fail": _fail,
}


def _fields(where: str, value: JsonValue, required: tuple[str, ...] = (), optional: tuple[str, ...] = ()) -> JsonObject:
    if not isinstance(value, Mapping):
        raise ScriptError(f'"{where}" is {json_type(value)}, expected an object')
    missing = [name for name in required if name not in value]
    unknown = [name for name in value if name not in (*required, *optional)]
    if missing or unknown:
        wrong = f"lacks {missing[0]!r}" if missing else f"has the unknown key {unknown[0]!r}"
        raise ScriptError(f'"{where}" {wrong}, its keys are {", ".join((*required, *optional))}')
    return value


def _string(where: str, value: JsonValue) -> str:
    if not isinstance(value, str):
        raise ScriptError(f'"{where}" is {json_type(value)}, expected a string')
    return value


def _count(name: str, value: JsonValue) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ScriptError(f'"usage.{name}" must be a whole number, zero or more')
    return value


def _if_true(where: str, value: JsonValue, item: Item) -> Item:
    if value is not True:
        raise ScriptError(f'"{where}" must be true')
    return item


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")


def _reason(error: OSError | UnicodeDecodeError) -> str:
    if isinstance(error, UnicodeDecodeError):
        return "it is not UTF-8 text"
    return (error.strerror or str(error)).lower()
