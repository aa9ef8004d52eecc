"""Scripts for the `script` engine (INTERFACES.md, section 2) in a short notation."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

Item = dict[str, Any]

#: Says the offered tools as JSON.
TOOLS: Item = {"tools": True}
#: Says the last tool result as text.
RESULT: Item = {"result": True}


def text(words: str) -> Item:
    """One chunk of the answer."""
    return {"text": words}


def thought(words: str) -> Item:
    """One chunk of a thought."""
    return {"thought": words}


def call(name: str, /, **arguments: Any) -> Item:
    """One tool call."""
    return {"call": {"name": name, "arguments": arguments}}


def raw_call(name: str, arguments: Any) -> Item:
    """One tool call with arguments of any JSON type."""
    return {"call": {"name": name, "arguments": arguments}}


def parallel(*calls: Item) -> Item:
    """Several calls at once."""
    return {"parallel": [item["call"] for item in calls]}


def sleep(seconds: float) -> Item:
    """The model thinks for a while."""
    return {"sleep_s": seconds}


def fail(kind: str, message: str) -> Item:
    """The provider fails."""
    return {"fail": {"kind": kind, "message": message}}


def usage(input_tokens: int, output_tokens: int) -> Item:
    """The provider counts."""
    return {"usage": {"inputTokens": input_tokens, "outputTokens": output_tokens}}


def write(path: Path, *turns: list[Item]) -> str:
    """Write the script and give the model's name for it."""
    path.write_text(json.dumps({"turns": list(turns)}), "utf-8")
    return f"script:{path}"
