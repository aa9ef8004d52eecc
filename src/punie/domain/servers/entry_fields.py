"""The fields of a server's definition, read one by one and checked for their types."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Final, TypeAlias, cast
from urllib.parse import SplitResult, urlsplit

from punie.domain.values.json_value import json_type

Fields: TypeAlias = Mapping[str, object]

LONGEST_S: Final = 86_400.0

_KNOWN: Final = frozenset({
    "type", "transport", "command", "args", "env", "envFile", "cwd", "url", "headers", "timeout", "disabled", "enabled",
    "alwaysLoad", "description", "name", "punie",
})  # fmt: skip
_OURS: Final = frozenset({"startup_timeout_s", "call_timeout_s", "ttl_s", "include", "exclude", "always"})
_INSTEAD: Final = {
    "headersHelper": "headersHelper is not run; write ${env:NAME} into headers",
    "oauth": "oauth is not done; write a token as ${env:NAME} into headers",
}
_MOST_TOLD: Final = 10
_LONGEST_TOLD: Final = 60


class EntryError(Exception):
    """A definition cannot be used; the message says why, in words for a person."""


def unused_keys(fields: Fields) -> Iterator[str]:
    """A sentence about each key that Punie does not know and therefore ignores."""
    ours = fields.get("punie")
    named = [key for key in fields if key not in _KNOWN]
    if isinstance(ours, Mapping):
        named += [f"punie.{key}" for key in cast("Fields", ours) if key not in _OURS]
    for key in named[:_MOST_TOLD]:
        yield _INSTEAD.get(key, f"{key[:_LONGEST_TOLD]!r} is not known, and not used")
    if len(named) > _MOST_TOLD:
        yield f"{len(named) - _MOST_TOLD} more keys are not known, and not used"


def text_in(fields: Fields, key: str) -> str:
    """The text at that key. Raises `EntryError`, as all of these functions do."""
    value = fields.get(key)
    if not isinstance(value, str):
        raise EntryError(f"its {key} must be a text, not {json_type(value)}")
    return value


def texts_in(fields: Fields, key: str) -> tuple[str, ...]:
    """The list of texts at that key; empty where there is none."""
    value = fields.get(key)
    if value is None:
        return ()
    if not isinstance(value, list) or not all(isinstance(item, str) for item in cast("list[object]", value)):
        raise EntryError(f"its {key} must be a list of texts")
    return tuple(cast("list[str]", value))


def table_in(fields: Fields, key: str) -> Mapping[str, str]:
    """The names and texts at that key; a number becomes its text, and null is left out."""
    value = fields.get(key)
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise EntryError(f"its {key} must be an object of texts, not {json_type(value)}")
    found = {name: item for name, item in cast("Fields", value).items() if item is not None}
    wrong = [name for name, item in found.items() if isinstance(item, bool) or not isinstance(item, (str, int, float))]
    if wrong:
        raise EntryError(f"in its {key}, {wrong[0]!r} must be a text")
    return {name: str(item) for name, item in found.items()}


def number_in(fields: Fields, key: str, default: float) -> float:
    """The number at that key, bounded; `default` where there is none, or 0. `timeout` is in milliseconds."""
    value = fields.get(key)
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < math.inf:
        raise EntryError(f"its {key} must be a number, and not below 0")
    limit = LONGEST_S * (1000 if key == "timeout" else 1)
    return float(min(value, limit)) if value > 0 else default


def http_parts(url: str) -> SplitResult | None:
    """The parts of an http or https address with a host; None for any other text."""
    try:
        parts = urlsplit(url)
        usable = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return None
    return parts if usable else None
