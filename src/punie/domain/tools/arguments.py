"""Single arguments of a call, read only where they have the expected form, and single properties of a schema."""

from __future__ import annotations

from collections.abc import Mapping

from punie.domain.values.json_value import JsonObject, JsonValue, freeze_object, json_text


def declares(schema: JsonObject, name: str) -> bool:
    """Whether the schema's own properties include that name."""
    properties = schema.get("properties")
    return isinstance(properties, Mapping) and name in properties


def without(schema: JsonObject, names: frozenset[str]) -> JsonObject:
    """The schema without these properties, or unchanged where it names one of them in any other place too."""
    properties, required = schema.get("properties"), schema.get("required")
    kept: dict[str, JsonValue] = dict(schema)
    if isinstance(properties, Mapping):
        kept["properties"] = {name: each for name, each in properties.items() if name not in names}
    if isinstance(required, tuple):
        kept["required"] = tuple(name for name in required if name not in names)
        if not kept["required"]:
            del kept["required"]
    text = json_text(kept)
    return schema if any(json_text(name) in text for name in names) else freeze_object(kept)


def text_argument(arguments: JsonObject, key: str, default: str = "") -> str:
    """The argument where it is a string, else the default; usable before validation and after it."""
    value = arguments.get(key)
    return value if isinstance(value, str) else default


def whole_argument(arguments: JsonObject, key: str) -> int | None:
    """The argument where it is a whole number, else None."""
    value = arguments.get(key)
    if isinstance(value, bool):
        return None
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if isinstance(value, int) else None


def words_argument(arguments: JsonObject, key: str) -> tuple[str, ...] | None:
    """The argument where it is an array of strings, else None."""
    value: JsonValue = arguments.get(key)
    if not isinstance(value, tuple):
        return None
    return tuple(item for item in value if isinstance(item, str))


def flag_argument(arguments: JsonObject, key: str) -> bool:
    """Whether the argument is true."""
    return arguments.get(key) is True
