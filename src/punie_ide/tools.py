"""The IDE's own tools, as the discovery extension lists and calls them (docs/interfaces.md)."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, TypeAlias, cast

from attrs import field, frozen

from punie.api import (
    EMPTY_OBJECT,
    NAME_PATTERN,
    Diff,
    JsonObject,
    Terminals,
    ToolKind,
    Workspace,
    freeze_object,
    thaw_object,
)

PAGE_SIZE = 50
"""Entries of one answer; a longer catalogue is sent in pages."""


@frozen
class ToolContext:
    """The context of one call of a tool: the IDE's files and terminals, and the session's directory `cwd`."""

    session_id: str
    call_id: str
    cwd: str
    workspace: Workspace | None = None
    terminals: Terminals | None = None


@frozen
class ToolAnswer:
    """The result of a tool: text for the model, and optionally the same as JSON for programs.

    `shown` are changes for the card, `locations` the paths that a client may follow (version 1.1 of the extension).
    """

    text: str
    structured: Mapping[str, Any] | None = None
    is_error: bool = False
    shown: tuple[Diff, ...] = ()
    locations: tuple[str, ...] = ()

    @classmethod
    def of(cls, value: object) -> ToolAnswer:
        """The answer for the return value of a handler: an answer, a text, or a JSON object."""
        if isinstance(value, ToolAnswer):
            return value
        if isinstance(value, str):
            return cls(value)
        if isinstance(value, dict):
            tree = cast("dict[str, Any]", value)
            return cls(json.dumps(tree, ensure_ascii=False, indent=1), tree)
        raise TypeError(f"a tool answers with a ToolAnswer, a str or a dict, not with {type(value).__name__}")

    def encode(self) -> dict[str, Any]:
        """The result of `_punie.dev/call_tool`."""
        content = [{"type": "text", "text": self.text}, *({"type": "diff"} | change for change in _changes(self.shown))]
        result: dict[str, Any] = {"content": content, "isError": self.is_error}
        if self.locations:
            result["locations"] = [{"path": path} for path in self.locations]
        return result if self.structured is None else result | {"structuredContent": dict(self.structured)}


@frozen
class ToolPreview:
    """The effect that a call would have, computed without any effect (version 1.1 of the extension)."""

    shown: tuple[Diff, ...] = ()
    locations: tuple[str, ...] = ()
    text: str = ""

    def encode(self) -> dict[str, Any]:
        """The result of `_punie.dev/preview_tool`."""
        said: dict[str, Any] = {"text": self.text} if self.text else {}
        if self.shown:
            said["diff"] = _changes(self.shown)
        if self.locations:
            said["locations"] = [{"path": path} for path in self.locations]
        return said


def _changes(diffs: tuple[Diff, ...]) -> list[dict[str, Any]]:
    return [{"path": diff.path, "oldText": diff.old_text, "newText": diff.new_text} for diff in diffs]


Previewer: TypeAlias = Callable[[dict[str, Any], ToolContext], Awaitable[ToolPreview]]
Handler: TypeAlias = Callable[[dict[str, Any], ToolContext], Awaitable["ToolAnswer | str | dict[str, Any]"]]


def _check_name(_tool: object, _attribute: object, value: str) -> None:
    if not NAME_PATTERN.fullmatch(value) or "__" in value:
        raise ValueError(f"{value!r} is not a tool name: use 1 to 64 of A-Z a-z 0-9 _ -, without two _ in a row")


@frozen
class IdeTool:
    """One tool that the IDE offers to agents: its catalogue entry and the coroutine function that runs it.

    The handler gets the arguments as plain JSON, already checked by the agent against `input_schema`, and a context. A
    `ToldToModel` error of the handler is read by the model; any other exception is answered as an internal error.
    `examples` are arguments of calls that are safe to try; `preview` tells what a call would do, before the question.
    """

    name: str = field(validator=_check_name)
    handler: Handler
    description: str = ""
    kind: ToolKind = field(default=ToolKind.OTHER, converter=ToolKind.parse)
    title: str | None = None
    input_schema: JsonObject = field(factory=lambda: {"type": "object"}, converter=freeze_object)
    requires_permission: bool = False
    categories: tuple[str, ...] = field(default=(), converter=tuple)
    annotations: JsonObject = field(default=EMPTY_OBJECT, converter=freeze_object)
    examples: tuple[Mapping[str, Any], ...] = field(default=(), converter=tuple)
    estimated_time_ms: int | None = None
    preview: Previewer | None = None

    def encode(self) -> dict[str, Any]:
        """The catalogue entry."""
        entry: dict[str, Any] = {"name": self.name, "kind": self.kind.value, "description": self.description}
        if self.title is not None:
            entry["title"] = self.title
        entry["inputSchema"] = thaw_object(self.input_schema)
        if self.requires_permission:
            entry["requiresPermission"] = True
        if self.categories:
            entry["categories"] = list(self.categories)
        if self.annotations:
            entry["annotations"] = thaw_object(self.annotations)
        if self.examples:
            entry["examples"] = [{"arguments": dict(example)} for example in self.examples]
        if self.estimated_time_ms is not None:
            entry["estimatedTimeMs"] = self.estimated_time_ms
        if self.preview is not None:
            entry["preview"] = True
        return entry


class ToolShelf:
    """The tools that the IDE offers now, in order; lives as long as the IDE.

    `minor` 1 declares version 1.1 of the extension: previews, and locations and changes in results.
    """

    def __init__(self, tools: Iterable[IdeTool] = (), *, extends: bool = False, minor: int = 0) -> None:
        self.extends = extends
        self.version = {"version": 1, "minor": minor} if minor else {"version": 1}
        self._tools: dict[str, IdeTool] = {}
        self.replace(tools)

    def __len__(self) -> int:
        return len(self._tools)

    def get(self, name: str) -> IdeTool | None:
        """The tool of that name, or None."""
        return self._tools.get(name)

    def replace(self, tools: Iterable[IdeTool]) -> None:
        """Offer these tools in place of the current ones."""
        self._tools = {tool.name: tool for tool in tools}

    def page(self, cursor: str | None) -> dict[str, Any]:
        """The result of `_punie.dev/discover_tools` from a cursor on. Raises `ValueError` for an unknown cursor."""
        start = _position(cursor)
        entries = [tool.encode() for tool in self._tools.values()]
        if start > len(entries):
            raise ValueError("the cursor leads past the end")
        end = start + PAGE_SIZE
        page: dict[str, Any] = {"tools": entries[start:end]}
        if end < len(entries):
            return page | {"nextCursor": str(end)}
        return page | {"extends": True} if self.extends else page


def _position(cursor: str | None) -> int:
    if cursor is None:
        return 0
    if not (cursor.isascii() and cursor.isdigit() and len(cursor) < 8):
        raise ValueError("the cursor is none of ours")
    return int(cursor)
