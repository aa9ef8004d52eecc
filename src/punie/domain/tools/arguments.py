"""What a tool's schema says of single arguments, for those that Punie fills in or looks at itself."""

from __future__ import annotations

from collections.abc import Mapping

from punie.domain.tools.tool import ToolDescriptor, ToolSource
from punie.domain.values.json_value import JsonObject, JsonValue, freeze_object, json_text

COMMAND = "command"


def declares(schema: JsonObject, name: str) -> bool:
    """Whether the schema's own properties have that one."""
    properties = schema.get("properties")
    return isinstance(properties, Mapping) and name in properties


def without(schema: JsonObject, names: frozenset[str]) -> JsonObject:
    """The schema without these properties, or as it is where it speaks of one of them in any other place too."""
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


def takes_command(tool: ToolDescriptor) -> bool:
    """Whether a server's tool takes a command: a yes for one command is no yes for another."""
    return tool.source is ToolSource.MCP and declares(tool.parameters, COMMAND)
