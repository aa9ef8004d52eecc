"""A session's events as JSON text, and back: one form for every store and for exported files.

A later version may add kinds and keys: `decoded` leaves out what it does not know. Text is escaped to ASCII, because
half a pair of UTF-16 (a file name that is no UTF-8, a split emoji) fits into no database and no file.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import TypeAlias, TypeVar, cast

import attrs
from attrs import frozen

from punie.domain.model.choice import Effort
from punie.domain.model.compaction import CompactionStatus
from punie.domain.model.usage import Usage
from punie.domain.permission.modes import AnsweredBy, Mode, Verdict
from punie.domain.session.bounded_json import Plain, dumped_within
from punie.domain.session.events import (
    CallFinished,
    CompactionChanged,
    ContextUsed,
    HistoryForgotten,
    ModeChanged,
    ModelChanged,
    PermissionAnswered,
    PermissionAsked,
    PlanChanged,
    RequestEnded,
    RequestEnding,
    TextDelta,
    ThoughtDelta,
    TitleChanged,
    ToolCallAnnounced,
    ToolCallUpdated,
    TurnEnded,
    UsageChanged,
)
from punie.domain.session.log import LoggedEvent, PromptAccepted, PromptFilled, SessionBegun
from punie.domain.session.plan import PlanStep, StepPriority, StepStatus
from punie.domain.session.turn import StopReason
from punie.domain.tools.execution import CallStatus
from punie.domain.tools.tool import ToolKind, ToolOutcome
from punie.domain.values.content import Diff, EmbeddedResource, Image, Prompt, ResourceLink, TerminalView, Text
from punie.domain.values.json_value import JsonValue, NotJsonError, freeze, thaw

BODY_LIMIT = 16 * 1_048_576
"""Characters (all ASCII) that an event's JSON may have; of one that is larger, long texts keep head and tail."""

YEAR_10_000 = 253_402_300_800


class UnreadableEventError(ValueError):
    """The JSON of an event of a known kind has not the form it should; the message says what is wrong."""


@frozen
class _Part:
    """How one field becomes JSON and comes back; `read` raises `UnreadableEventError`."""

    write: Callable[[object], object]
    read: Callable[[object], object]


def _same(value: object) -> object:
    return value


def _typed(what: str, *kinds: type) -> _Part:
    def read(value: object) -> object:
        if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
            raise UnreadableEventError(f"expected {what}")
        return value

    return _Part(_same, read)


def _or_none(part: _Part) -> _Part:
    return _Part(
        lambda value: None if value is None else part.write(value),
        lambda value: None if value is None else part.read(value),
    )


def _several(part: _Part) -> _Part:
    def read(value: object) -> object:
        if not isinstance(value, list):
            raise UnreadableEventError("expected a list")
        read_ones = (part.read(item) for item in cast("list[object]", value))
        return tuple(item for item in read_ones if item is not _UNKNOWN)

    return _Part(lambda value: [part.write(item) for item in cast("Sequence[object]", value)], read)


def _one_of(kind: type[Enum]) -> _Part:
    def read(value: object) -> object:
        try:
            return kind(value)
        except ValueError:
            raise UnreadableEventError(f"{str(value)[:40]!r} is not one of its values") from None

    return _Part(lambda value: cast("Enum", value).value, read)


def _read_tree(value: object) -> object:
    try:
        return freeze(value)
    except NotJsonError as error:
        raise UnreadableEventError(str(error)) from None


_UNKNOWN = object()
"""A content block of a kind that a later version added."""

_TEXT = _typed("a string", str)
_COUNT = _typed("a whole number", int)
_NUMBER = _typed("a number", int, float)
_TEXTS = _several(_TEXT)
_TREE = _Part(lambda value: thaw(cast("JsonValue", value)), _read_tree)

_Shape: TypeAlias = Mapping[str, _Part]


def _record(kind: type, shape: _Shape) -> _Part:
    return _Part(lambda value: _written(value, shape), lambda value: _made(kind, shape, value))


_BLOCKS: Mapping[str, tuple[type, _Shape]] = {
    "text": (Text, {"text": _TEXT}),
    "image": (Image, {"data": _TEXT, "mime_type": _TEXT, "uri": _or_none(_TEXT)}),
    "resource_link": (
        ResourceLink,
        {"uri": _TEXT, "name": _TEXT} | dict.fromkeys(("description", "mime_type", "title"), _or_none(_TEXT)),
    ),
    "resource": (EmbeddedResource, {"uri": _TEXT} | dict.fromkeys(("text", "blob", "mime_type"), _or_none(_TEXT))),
    "diff": (Diff, {"path": _TEXT, "old_text": _or_none(_TEXT), "new_text": _TEXT}),
    "terminal": (TerminalView, {"terminal_id": _TEXT}),
}
_BLOCK_NAMES: Mapping[type, str] = {kind: name for name, (kind, _) in _BLOCKS.items()}


def _write_block(block: object) -> object:
    name = _BLOCK_NAMES[type(block)]
    return {"type": name, **_written(block, _BLOCKS[name][1])}


def _read_block(value: object) -> object:
    if not isinstance(value, dict):
        raise UnreadableEventError("expected a content block")
    given = cast("dict[str, object]", value)
    name = given.get("type")
    if not isinstance(name, str):
        raise UnreadableEventError("expected a content block")
    if name not in _BLOCKS:
        return _UNKNOWN
    kind, shape = _BLOCKS[name]
    return _made(kind, shape, given)


_EFFORT = _Part(
    lambda value: None if value is None else cast("Effort", value).value,
    lambda value: next((effort for effort in Effort if effort == value), None),  # a later version may know others
)
_STEP: _Shape = {"content": _TEXT, "status": _one_of(StepStatus), "priority": _one_of(StepPriority)}
_CONTENT = _several(_Part(_write_block, _read_block))
_USAGE_COUNTS = (
    "input_tokens", "output_tokens", "cached_read_tokens", "cached_write_tokens", "requests",
)  # fmt: skip
_USAGE = _record(Usage, dict.fromkeys(_USAGE_COUNTS, _COUNT) | {"cost_usd": _or_none(_NUMBER)})

_KINDS: Mapping[str, tuple[type, _Shape]] = {
    "session_begun": (
        SessionBegun,
        {"cwd": _TEXT, "additional_directories": _TEXTS, "forked_from": _or_none(_TEXT)},
    ),
    "prompt_accepted": (
        PromptAccepted,
        {
            "turn_id": _TEXT, "prompt": _record(Prompt, {"blocks": _CONTENT}), "model": _or_none(_TEXT),
            "effort": _EFFORT,
        },
    ),
    "prompt_filled": (PromptFilled, {"prompt": _record(Prompt, {"blocks": _CONTENT})}),
    "text": (TextDelta, {"text": _TEXT, "message_id": _or_none(_TEXT)}),
    "thought": (ThoughtDelta, {"text": _TEXT, "message_id": _or_none(_TEXT)}),
    "call_announced": (
        ToolCallAnnounced,
        {
            "call_id": _TEXT, "tool": _TEXT, "title": _TEXT, "kind": _one_of(ToolKind), "locations": _TEXTS,
            "raw_input": _TREE, "line": _or_none(_COUNT),
        },
    ),
    "call_updated": (
        ToolCallUpdated,
        {
            "call_id": _TEXT, "status": _or_none(_one_of(CallStatus)), "content": _or_none(_CONTENT),
            "raw_output": _TREE, "locations": _or_none(_TEXTS), "line": _or_none(_COUNT),
        },
    ),
    "call_finished": (
        CallFinished,
        {"call_id": _TEXT, "tool": _TEXT, "outcome": _one_of(ToolOutcome), "for_model": _TEXT},
    ),
    "permission_asked": (PermissionAsked, {"call_id": _TEXT, "reason": _TEXT, "options": _TEXTS}),
    "permission_answered": (
        PermissionAnswered,
        {
            "call_id": _TEXT, "verdict": _one_of(Verdict), "reason": _TEXT, "answered_by": _one_of(AnsweredBy),
            "choice": _or_none(_TEXT),
        },
    ),
    "request_ended": (
        RequestEnded,
        {
            "model": _TEXT, "elapsed_s": _NUMBER, "usage": _USAGE, "first_s": _or_none(_NUMBER),
            "ending": _one_of(RequestEnding),
        },
    ),
    "usage": (UsageChanged, {"usage": _USAGE}),
    "context": (
        ContextUsed,
        {"used_tokens": _COUNT, "size_tokens": _or_none(_COUNT), "cost_usd": _or_none(_NUMBER)},
    ),
    "mode": (ModeChanged, {"mode": _one_of(Mode)}),
    "model": (ModelChanged, {"model": _TEXT, "effort": _EFFORT}),
    "title": (TitleChanged, {"title": _TEXT}),
    "plan": (PlanChanged, {"plan": _several(_record(PlanStep, _STEP))}),
    "compaction": (
        CompactionChanged,
        {"compaction_id": _TEXT, "status": _one_of(CompactionStatus)}
        | dict.fromkeys(("summary", "error"), _or_none(_TEXT)),
    ),
    "forgotten": (HistoryForgotten, {}),
    "turn_ended": (TurnEnded, {"stop_reason": _or_none(_one_of(StopReason)), "failure": _or_none(_TEXT)}),
}  # fmt: skip
_KIND_NAMES: Mapping[type, str] = {kind: name for name, (kind, _) in _KINDS.items()}

E = TypeVar("E", bound=LoggedEvent)


def kind_name(kind: type[E]) -> str:
    """The name under which events of that class are written."""
    return _KIND_NAMES[kind]


def is_known(kind: str) -> bool:
    """Whether this version knows events of that kind."""
    return kind in _KINDS


def encoded(event: LoggedEvent, limit: int = BODY_LIMIT) -> tuple[str, str]:
    """The event's kind and its JSON, which is ASCII and has `limit` characters at most.

    Where it would have more, long texts keep head and tail with a line that says how much was left out.
    """
    name = _KIND_NAMES[type(event)]
    plain = cast("Plain", _written(event, _KINDS[name][1]))
    return name, dumped_within(plain, limit)


def decoded(kind: str, body: str) -> LoggedEvent | None:
    """The event of that JSON; None for a kind that this version does not know.

    Raises `UnreadableEventError` where the JSON has not the form of its kind.
    """
    if kind not in _KINDS:
        return None
    try:
        value: object = json.loads(body)
    except (ValueError, RecursionError):
        raise UnreadableEventError("it is no JSON") from None
    return event_of(kind, value)


def event_of(kind: str, value: object) -> LoggedEvent | None:
    """As `decoded`, of JSON that was read already."""
    if kind not in _KINDS:
        return None
    event_class, shape = _KINDS[kind]
    return cast("LoggedEvent", _made(event_class, shape, value))


def is_moment(value: object) -> bool:
    """Whether a value that was read is a time: seconds since the epoch, of a year with four digits."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < YEAR_10_000


def _written(value: object, shape: _Shape) -> dict[str, object]:
    """The fields as JSON; one that is optional and None or empty is not written."""
    written: dict[str, object] = {}
    for field in attrs.fields(cast("type[attrs.AttrsInstance]", type(value))):
        of_value: object = getattr(value, field.name)
        if (of_value is None or of_value == ()) and field.default is not attrs.NOTHING and of_value == field.default:
            continue
        written[field.name] = shape[field.name].write(of_value)
    return written


def _made(kind: type, shape: _Shape, value: object) -> object:
    """An instance of what was read; keys that it does not have are left out."""
    if not isinstance(value, dict):
        raise UnreadableEventError("expected an object")
    given = cast("dict[str, object]", value)
    fields: dict[str, object] = {}
    for name, part in shape.items():
        if name in given:
            try:
                fields[name] = part.read(given[name])
            except UnreadableEventError as error:
                raise UnreadableEventError(f"{name}: {error}") from None
    try:
        return kind(**fields)
    except TypeError:
        missing = [field.name for field in attrs.fields(kind) if field.default is attrs.NOTHING]
        lacking = ", ".join(name for name in missing if name not in fields)
        raise UnreadableEventError(f"it has no {lacking}") from None
