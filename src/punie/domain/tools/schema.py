"""A tool's parameters one by one, the JSON Schema that says the same, and single arguments of a call.

`to_parameters` takes the properties of a schema apart and `to_schema` puts them together again, as the same JSON value
with its key order. Whatever a field cannot hold is kept: keywords without a field in `metadata`, and a property that
its fields would not give back unchanged in `schema`, verbatim. Arguments are read only where they have the expected
form.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from typing import Any, Final, Literal, TypeAlias, cast

from attrs import evolve, field, frozen

from punie.domain.values.json_value import EMPTY_OBJECT, JsonObject, JsonValue, freeze, freeze_object, json_text, thaw


class _Absence(Enum):
    ABSENT = "absent"


ABSENT: Final = _Absence.ABSENT
"""The default of a parameter that has none; None is a default of null."""

Absent: TypeAlias = Literal[_Absence.ABSENT]
TypeName: TypeAlias = "str | tuple[str, ...]"


def _type_name(value: str | Iterable[str] | None) -> TypeName | None:
    return value if value is None or isinstance(value, str) else tuple(value)


def _default(value: object) -> JsonValue | Absent:
    return ABSENT if value is ABSENT else freeze(value)


def _values(value: Iterable[object] | None) -> tuple[JsonValue, ...] | None:
    return None if value is None else tuple(freeze(item) for item in value)


def _verbatim(value: object) -> JsonObject | bool | None:
    return value if value is None or isinstance(value, bool) else freeze_object(value)


def _rest(value: object) -> JsonObject:
    rest = freeze_object(value)
    if taken := FIELD_KEYWORDS & rest.keys():
        raise ValueError(f"metadata cannot hold {', '.join(sorted(taken))}: there is a field for that")
    return rest


class SchemaFormError(ValueError):
    """A schema has no parameters that could be listed; the sentence says where."""


@frozen
class ToolParameter:
    """One parameter of a tool; immutable. A field that is None or `ABSENT` is left out of the schema.

    `type` is a JSON type name or several; `item_type` that of an array's items; `allowed_values` is `enum`.
    `metadata` are the keywords that have no field here. `schema` is the property's whole schema where it is kept
    verbatim, and takes the place of every field but `name` and `required`. Raises `ValueError` where `metadata` names
    a keyword that has a field, and `NotJsonError` for values that are no JSON.
    """

    name: str
    type: TypeName | None = field(default=None, converter=_type_name)
    description: str = ""
    required: bool = False
    default: JsonValue | Absent = field(default=ABSENT, converter=_default, kw_only=True)
    allowed_values: tuple[JsonValue, ...] | None = field(default=None, converter=_values, kw_only=True)
    min_value: float | None = field(default=None, kw_only=True)
    max_value: float | None = field(default=None, kw_only=True)
    min_length: int | None = field(default=None, kw_only=True)
    max_length: int | None = field(default=None, kw_only=True)
    pattern: str | None = field(default=None, kw_only=True)
    format: str | None = field(default=None, kw_only=True)
    examples: tuple[JsonValue, ...] | None = field(default=None, converter=_values, kw_only=True)
    item_type: TypeName | None = field(default=None, converter=_type_name, kw_only=True)
    metadata: JsonObject = field(default=EMPTY_OBJECT, converter=_rest, kw_only=True)
    schema: JsonObject | bool | None = field(default=None, converter=_verbatim, kw_only=True)

    def property_schema(self) -> JsonObject | bool:
        """This parameter's own schema: `schema` where given, else one made of the fields."""
        if self.schema is not None:
            return self.schema
        keywords: dict[str, object] = {keyword: getattr(self, name) for keyword, (name, _) in _FIELDS.items()}
        keywords["description"] = self.description or None
        keywords["items"] = None if self.item_type is None else {"type": self.item_type}
        given = {keyword: value for keyword, value in keywords.items() if value is not None}
        if self.default is not ABSENT:
            given["default"] = self.default
        return freeze_object({**given, **self.metadata})


def to_schema(parameters: Iterable[ToolParameter]) -> JsonObject:
    """The object schema of these parameters, in their order; `required` is absent when none is."""
    listed = {parameter.name: parameter for parameter in parameters}
    properties = {name: parameter.property_schema() for name, parameter in listed.items()}
    required = [name for name, parameter in listed.items() if parameter.required]
    whole: dict[str, object] = {"type": "object", "properties": properties}
    return freeze_object({**whole, "required": required} if required else whole)


def to_parameters(schema: JsonObject) -> tuple[ToolParameter, ...]:
    """The parameters of an object schema, in its order.

    Raises `SchemaFormError` where `properties` is no object of schemas or `required` no array of names.
    """
    properties, required = schema.get("properties", EMPTY_OBJECT), schema.get("required", ())
    if not isinstance(properties, Mapping):
        raise SchemaFormError("properties is not an object")
    if not isinstance(required, tuple) or not all(isinstance(name, str) for name in required):
        raise SchemaFormError("required is not an array of names")
    return tuple(_parameter(name, value, required=name in required) for name, value in properties.items())


def _parameter(name: str, value: JsonValue, *, required: bool) -> ToolParameter:
    if isinstance(value, bool):
        return ToolParameter(name, required=required, schema=value)
    if not isinstance(value, Mapping):
        raise SchemaFormError(f"the schema of {name!r} is neither an object nor a boolean")
    read: dict[str, Any] = {field: reader(value.get(keyword)) for keyword, (field, reader) in _FIELDS.items()}
    read["description"] = read["description"] or ""
    rest = {keyword: item for keyword, item in value.items() if keyword not in FIELD_KEYWORDS}
    fields = ToolParameter(name, required=required, default=value.get("default", ABSENT), metadata=rest, **read)
    return fields if _same(fields.property_schema(), value) else evolve(fields, schema=value)


def _same(one: JsonValue, other: JsonValue) -> bool:
    """Whether two trees are the same JSON text: key order counts, and 1 is neither 1.0 nor true."""
    return json.dumps(thaw(one)) == json.dumps(thaw(other))


def _names(value: JsonValue) -> TypeName | None:
    if isinstance(value, tuple) and all(isinstance(name, str) for name in value):
        return cast("tuple[str, ...]", value)
    return value if isinstance(value, str) else None


def _text(value: JsonValue) -> str | None:
    return value if isinstance(value, str) else None


def _array(value: JsonValue) -> tuple[JsonValue, ...] | None:
    return value if isinstance(value, tuple) else None


def _number(value: JsonValue) -> float | None:
    return value if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def _whole(value: JsonValue) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _item_type(items: JsonValue) -> TypeName | None:
    return _names(items["type"]) if isinstance(items, Mapping) and set(items) == {"type"} else None


_FIELDS: Final[Mapping[str, tuple[str, Callable[[JsonValue], object]]]] = {
    "type": ("type", _names),
    "description": ("description", _text),
    "enum": ("allowed_values", _array),
    "minimum": ("min_value", _number),
    "maximum": ("max_value", _number),
    "minLength": ("min_length", _whole),
    "maxLength": ("max_length", _whole),
    "pattern": ("pattern", _text),
    "format": ("format", _text),
    "items": ("item_type", _item_type),
    "examples": ("examples", _array),
}
FIELD_KEYWORDS: Final = frozenset({"default", *_FIELDS})
"""The keywords that have a field of their own; `_FIELDS` has the field and the reader of each in the schema's order."""


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
