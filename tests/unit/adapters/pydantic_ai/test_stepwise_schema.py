"""Tools as a grammar's schema: what is kept, what is left to the desk, and that nothing unknown gets through."""

from __future__ import annotations

from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic_ai.tools import ToolDefinition

from punie_gguf.stepwise.schema import arguments, step_schema

KNOWN = {
    "type", "properties", "required", "additionalProperties", "items", "enum", "const", "anyOf", "minimum", "maximum",
    "minItems", "maxItems", "$ref", "$defs",
}  # fmt: skip


def tool(schema: dict[str, Any], name: str = "look") -> ToolDefinition:
    return ToolDefinition(name=name, parameters_json_schema=schema)


def one(schema: dict[str, Any]) -> dict[str, Any]:
    """What becomes of that schema as the only property of a tool."""
    return arguments(tool({"type": "object", "properties": {"x": schema}}))["properties"]["x"]


def keywords(schema: Any) -> set[str]:
    """Every keyword in a schema, wherever it stands."""
    if isinstance(schema, list):
        return set().union(*map(keywords, schema))
    if not isinstance(schema, dict):
        return set()
    found = set(schema)
    for key, value in schema.items():
        if key in {"properties", "$defs"}:
            found |= set().union(*map(keywords, value.values()))
        elif key not in {"enum", "const", "required"}:
            found |= keywords(value)
    return found


def takes(schema: dict[str, Any], value: Any) -> bool:
    return jsonschema.Draft202012Validator(schema).is_valid(value)


def test_a_step_is_one_call_with_its_own_arguments_or_an_answer_or_several_calls_after_a_word() -> None:
    path = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
    step = step_schema([tool(path, "read"), tool({"type": "object"}, "look")])
    call = {"tool": "read", "arguments": {"path": "a"}}
    assert takes(step, call)
    assert takes(step, {"tool": "look", "arguments": {"any": 1}})
    assert takes(step, {"answer": "Done."})
    assert takes(step, {"say": "I read.", "calls": [call, call]})
    for wrong in (
        {"tool": "other", "arguments": {}},
        {"tool": "read", "arguments": {}},
        {"tool": "read", "arguments": {"path": 1}},
        {"tool": "read", "arguments": {"path": "a", "more": 1}},
        {"tool": "read", "arguments": {"path": "a"}, "answer": "x"},
        {"say": "x", "calls": []},
        {"say": "x", "calls": [call] * 9},
        {"answer": 1},
        {},
        "text",
    ):
        assert not takes(step, wrong), wrong


def test_without_tools_a_step_is_an_answer() -> None:
    assert takes(step_schema([]), {"answer": "a"})
    assert not takes(step_schema([]), {"tool": "look", "arguments": {}})


@pytest.mark.parametrize(
    ("schema", "kept"),
    [
        ({"type": "string", "format": "uri", "pattern": "(?=x)", "maxLength": 3, "title": "T"}, {"type": "string"}),
        ({"type": "integer", "minimum": 1, "maximum": 5}, {"type": "integer", "minimum": 1, "maximum": 5}),
        ({"type": "integer", "minimum": 5, "maximum": 1}, {"type": "integer"}),
        ({"type": "number", "multipleOf": 0.1, "minimum": 0.5}, {"type": "number"}),
        ({"type": ["string", "null"]}, {"anyOf": [{"type": "string"}, {"type": "null"}]}),
        ({"enum": ["a", 1, None]}, {"enum": ["a", 1, None]}),
        ({"const": {"a": 1}}, {"const": {"a": 1}}),
        ({"oneOf": [{"type": "string"}, {"type": "integer"}]}, {"anyOf": [{"type": "string"}, {"type": "integer"}]}),
        ({"anyOf": [{"type": "string"}, {}]}, {}),
        ({"not": {"type": "string"}}, {}),
        ({"type": "nonsense"}, {}),
        ({"$ref": "https://example.org/s"}, {}),
        ({"$ref": "#/nowhere"}, {}),
        (
            {"type": "array", "items": {"type": "string"}, "uniqueItems": True, "maxItems": 9999},
            {"type": "array", "items": {"type": "string"}},
        ),
    ],
    ids=str,
)
def test_what_is_kept_of_a_schema(schema: dict[str, Any], kept: dict[str, Any]) -> None:
    assert one(schema) == kept


def test_definitions_are_written_out_and_those_within_themselves_end_somewhere() -> None:
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {"a": {"$ref": "#/$defs/a~1b"}, "n": {"$ref": "#/$defs/node"}},
        "$defs": {
            "a/b": {"type": "integer"},
            "node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}}},
        },
    }
    written = arguments(tool(schema))
    assert written["properties"]["a"] == {"type": "integer"}
    assert takes(written, {"n": {"next": {"next": {}}}})
    assert "$ref" not in keywords(written)


def test_all_of_several_is_one_object_with_all_their_properties() -> None:
    schema: dict[str, Any] = {
        "allOf": [{"$ref": "#/$defs/a"}, {"properties": {"b": {"type": "string"}}, "required": ["b"]}],
        "$defs": {"a": {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}},
    }
    written = arguments(tool(schema))
    assert takes(written, {"a": 1, "b": "x"})
    assert not takes(written, {"a": 1})


@pytest.mark.parametrize("schema", [{}, {"type": "string"}, {"anyOf": [{"type": "object"}]}, {"$ref": "#"}], ids=str)
def test_arguments_are_an_objects_whatever_the_schema_says(schema: dict[str, Any]) -> None:
    assert arguments(tool(schema))["type"] == "object"


WORDS = st.sampled_from(
    ["type", "properties", "required", "items", "anyOf", "allOf", "enum", "$ref", "minimum", "maximum", "not", "if",
     "additionalProperties", "pattern", "prefixItems", "const", "maxItems", "oneOf"]
)  # fmt: skip
VALUES = st.sampled_from(["object", "string", "array", "#", "#/properties/a", "a", 1, 2.5, True, None, ["a"], [], {}])
ANY = st.recursive(
    VALUES,
    lambda inner: st.dictionaries(WORDS | st.sampled_from(["a", "b"]), inner, max_size=4) | st.lists(inner, max_size=3),
    max_leaves=12,
)


@settings(deadline=None, max_examples=80)
@given(schema=st.dictionaries(WORDS, ANY, max_size=5))
def test_no_unknown_keyword_gets_through_whatever_the_schema_is(schema: dict[str, Any]) -> None:
    written = step_schema([tool(schema)])
    assert keywords(written) <= KNOWN
    jsonschema.Draft202012Validator.check_schema(written)
