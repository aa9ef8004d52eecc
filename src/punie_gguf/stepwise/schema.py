"""The JSON Schema of one step of a constrained model, which the server turns into a grammar.

The grammar's compiler takes part of JSON Schema only, and where it meets a keyword that it does not know it lets the
model write anything, without an error. So a tool's schema is written anew here with what is known to work; the desk
checks the arguments against the real one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, cast

from attrs import define, field
from pydantic_ai.tools import ToolDefinition

TOOL, ARGUMENTS, ANSWER, SAY, CALLS = "tool", "arguments", "answer", "say", "calls"

MAX_CALLS: Final = 8
MAX_ITEMS: Final = 64
MAX_DEPTH: Final = 12
MAX_CHOICES: Final = 32
MAX_NUMBER: Final = 2**53

Schema = dict[str, Any]


def step_schema(tools: Iterable[ToolDefinition]) -> Schema:
    """One of the tools with its own arguments; several of them, after a word; or a final answer."""
    calls = [_object({TOOL: {"const": tool.name}, ARGUMENTS: arguments(tool)}) for tool in tools]
    text: Schema = {"type": "string"}
    final = _object({ANSWER: text})
    if not calls:
        return final
    several = {"type": "array", "items": {"$ref": "#/$defs/call"}, "minItems": 1, "maxItems": MAX_CALLS}
    return {
        "$defs": {"call": {"anyOf": calls}},
        "anyOf": [{"$ref": "#/$defs/call"}, final, _object({SAY: text, CALLS: several})],
    }


def arguments(tool: ToolDefinition) -> Schema:
    """The tool's input schema, simplified; always an object's."""
    simple = _Simplifier(tool.parameters_json_schema).of(tool.parameters_json_schema)
    return simple if simple.get("type") == "object" else {"type": "object"}


def _object(properties: Mapping[str, Schema]) -> Schema:
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties),
        "additionalProperties": False,
    }


@define
class _Simplifier:
    """Writes one schema anew; lives as long as that. A reference is replaced by what it refers to."""

    root: Mapping[str, Any]
    _depth: int = field(default=0, init=False)

    def of(self, schema: object) -> Schema:
        """The same in the known words; `{}`, anything, for what is too deep or cannot be said in them."""
        if self._depth >= MAX_DEPTH:
            return {}
        self._depth += 1
        try:
            return self._written(_mapping(schema))
        finally:
            self._depth -= 1

    def _written(self, schema: Mapping[str, Any]) -> Schema:
        if "$ref" in schema:
            return self.of(self._referred(schema["$ref"]))
        if "const" in schema:
            return {"const": schema["const"]}
        if values := _items(schema.get("enum")):
            return {"enum": values}
        if parts := _items(schema.get("allOf")):
            own = {key: value for key, value in schema.items() if key != "allOf"}
            return self.of(_merged([own, *map(self._resolved, parts)]))
        choices = _items(schema.get("anyOf")) or _items(schema.get("oneOf"))
        if choices and "properties" not in schema:
            return _any_of([self.of(choice) for choice in choices[:MAX_CHOICES]])
        return self._typed(schema)

    def _typed(self, schema: Mapping[str, Any]) -> Schema:
        kind = schema.get("type", "object" if "properties" in schema else None)
        if names := _items(kind):
            return _any_of([self._typed({**schema, "type": name}) for name in names])
        match kind:
            case "object":
                return self._object(schema)
            case "array":
                counts = _bounds(schema, "minItems", "maxItems")
                few = {key: count for key, count in counts.items() if 0 <= count <= MAX_ITEMS}
                return {"type": "array", "items": self.of(schema.get("items")), **few}
            case "integer" | "number":
                return {"type": kind, **_bounds(schema, "minimum", "maximum")}
            case "string" | "boolean" | "null":
                return {"type": kind}
            case _:
                return {}

    def _object(self, schema: Mapping[str, Any]) -> Schema:
        named = {name: self.of(value) for name, value in _mapping(schema.get("properties")).items()}
        required = [name for name in _items(schema.get("required")) if isinstance(name, str)]
        named |= {name: {} for name in required if name not in named}
        more = schema.get("additionalProperties", not named)
        written: Schema = {"type": "object", "properties": named, "required": required}
        return written | {"additionalProperties": more if isinstance(more, bool) else self.of(more)}

    def _resolved(self, part: object) -> Mapping[str, Any]:
        said = _mapping(part)
        return _mapping(self._referred(said["$ref"])) if "$ref" in said else said

    def _referred(self, target: object) -> object:
        """The target of a reference within the schema; None for any other reference."""
        if not isinstance(target, str) or not target.startswith("#"):
            return None
        found: object = self.root
        for step in target[1:].split("/")[1:]:
            found = _mapping(found).get(step.replace("~1", "/").replace("~0", "~"))
        return found


def _any_of(choices: list[Schema]) -> Schema:
    return {} if {} in choices else {"anyOf": choices}


def _merged(parts: Iterable[Mapping[str, Any]]) -> Schema:
    """All of them in one: their properties and what they require together, of anything else what comes first."""
    whole: Schema = {}
    for part in parts:
        for key, value in part.items():
            if key == "properties":
                whole[key] = {**_mapping(value), **_mapping(whole.get(key))}
            elif key == "required":
                whole[key] = [*dict.fromkeys((*_items(whole.get(key)), *_items(value)))]
            else:
                whole.setdefault(key, value)
    return whole


def _bounds(schema: Mapping[str, Any], low: str, high: str) -> dict[str, int]:
    """The two bounds where they are whole numbers that leave room between them."""
    numbers = {key: schema.get(key) for key in (low, high)}
    said = {key: number for key, number in numbers.items() if type(number) is int and abs(number) <= MAX_NUMBER}
    return {} if said.get(low, 0) > said.get(high, said.get(low, 0)) else said


def _mapping(value: object) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}


def _items(value: object) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else []
