"""The smallest forms in which tools and results travel (S2-75 to S2-79), and what a tool costs a model to read."""

from __future__ import annotations

import json

from punie.domain.tools.tool import ToolDescriptor, ToolResult
from punie.domain.values.json_value import thaw, thaw_object

CHARS_PER_TOKEN = 4
"""A rule of thumb over the providers' tokenizers for English and JSON."""


def encode_definition(tool: ToolDescriptor) -> dict[str, object]:
    """A tool as a model or a program is told of it: its name is its id, and nothing else of it travels."""
    return {"name": tool.name, "description": tool.description, "inputSchema": thaw_object(tool.parameters)}


def encode_result(result: ToolResult) -> dict[str, object]:
    """A result as a program is told of it; `error` is there exactly where `isError` is true."""
    told: dict[str, object] = {"result": thaw(result.data), "isError": not result.succeeded}
    if result.error_message is not None:
        told["error"] = result.error_message
    return told


def estimated_tokens(tool: ToolDescriptor) -> int:
    """About how many tokens the tool's description costs at each model request; an estimate for any model."""
    return tokens_of(json.dumps(encode_definition(tool), ensure_ascii=False, separators=(",", ":")))


def tokens_of(text: str) -> int:
    """About how many tokens a text is; an estimate for any model."""
    return -(-len(text) // CHARS_PER_TOKEN)
