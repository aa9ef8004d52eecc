"""A tool: what it is (`ToolDescriptor`), one use of it (`ToolCall`), what came of it (`ToolResult`)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import StrEnum

from attrs import field, frozen

from punie.domain.content import ResultContent, Text
from punie.domain.json_value import EMPTY_OBJECT, JsonObject, JsonValue, freeze, freeze_object
from punie.domain.metadata import ToolMetadata

NAME_PATTERN = re.compile(r"[A-Za-z0-9_-]{1,64}")
"""Names a model provider accepts (INTERFACES.md section 3)."""


class ToolKind(StrEnum):
    """ACP's tool kinds; a kind is a hint for icons and for the policy, never a permission by itself."""

    READ = "read"
    EDIT = "edit"
    DELETE = "delete"
    MOVE = "move"
    SEARCH = "search"
    EXECUTE = "execute"
    THINK = "think"
    FETCH = "fetch"
    SWITCH_MODE = "switch_mode"
    OTHER = "other"

    @classmethod
    def parse(cls, value: object) -> ToolKind:
        """The kind of that name; anything unknown counts as `other`."""
        try:
            return cls(value)
        except ValueError:
            return cls.OTHER


class ToolSource(StrEnum):
    """Who serves a tool; the policy treats the IDE's and MCP's as strangers."""

    BUILT_IN = "built-in"
    IDE = "ide"
    MCP = "mcp"


def _names(values: Iterable[str]) -> tuple[str, ...]:
    return tuple(values)


def _optional_object(value: object) -> JsonObject | None:
    return None if value is None else freeze_object(value)


def _check_name(_owner: object, _attribute: object, value: str) -> None:
    if not NAME_PATTERN.fullmatch(value):
        raise ValueError(f"{value!r} is not a tool name: use 1 to 64 of A-Z a-z 0-9 _ -")


@frozen
class ToolDescriptor:
    """One tool as a session offers it; immutable, lives as long as the catalogue that lists it.

    `parameters` is the input's JSON Schema, kept as the same JSON value with its key order. `metadata` keeps the
    keys of a catalogue entry that we do not know; `details` is everything optional that we do. Raises `ValueError`
    for a name no provider would accept.
    """

    name: str = field(validator=_check_name)
    kind: ToolKind = field(default=ToolKind.OTHER, converter=ToolKind.parse)
    description: str = ""
    parameters: JsonObject = field(
        default=None, converter=lambda v: freeze_object({"type": "object"} if v is None else v)
    )
    title: str | None = None
    requires_permission: bool = False
    categories: tuple[str, ...] = field(default=(), converter=_names)
    tags: tuple[str, ...] = field(default=(), converter=_names)
    annotations: JsonObject = field(default=EMPTY_OBJECT, converter=freeze_object)
    output_schema: JsonObject | None = field(default=None, converter=_optional_object)
    metadata: JsonObject = field(default=EMPTY_OBJECT, converter=freeze_object)
    source: ToolSource = ToolSource.BUILT_IN
    details: ToolMetadata = field(factory=ToolMetadata)

    @property
    def destructive(self) -> bool:
        """Whether its annotations say so (MCP's `destructiveHint`)."""
        return self.annotations.get("destructiveHint") is True


@frozen
class ToolCall:
    """One use of a tool by an engine: `id` is unique in the session, `arguments` as the model wrote them.

    `arguments` is normally an object; a model may write anything, and the desk refuses what is not.
    """

    id: str
    name: str
    arguments: JsonValue = field(default=EMPTY_OBJECT, converter=freeze)


class ToolOutcome(StrEnum):
    """How a call ended."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    DENIED = "denied"
    CANCELLED = "cancelled"


@frozen
class ToolResult:
    """What came of a call. Data, never an exception (R-14): `content` for people, `structured` for programs.

    `for_model` replaces the text the model reads where it should differ from what the client shows.
    `code` names the error of a call that did not succeed.
    """

    outcome: ToolOutcome
    content: tuple[ResultContent, ...] = ()
    structured: JsonValue = field(default=None, converter=freeze)
    for_model: str | None = None
    code: str | None = None

    @classmethod
    def success(
        cls, text: str, *, content: tuple[ResultContent, ...] | None = None, structured: object = None
    ) -> ToolResult:
        """A call that did its work; `content` is shown to the client instead of `text` where given."""
        shown = (Text(text),) if content is None else content
        return cls(ToolOutcome.SUCCEEDED, shown, structured=structured, for_model=None if content is None else text)

    @classmethod
    def failure(cls, message: str, *, code: str = "tool_failed", structured: object = None) -> ToolResult:
        """A call that failed; `message` is a whole sentence that both the model and the person read."""
        return cls(ToolOutcome.FAILED, (Text(message or "The tool failed."),), structured=structured, code=code)

    @classmethod
    def denied(cls, message: str) -> ToolResult:
        """A call that was not allowed; nothing was run (R-08)."""
        return cls(ToolOutcome.DENIED, (Text(message),), code="permission_denied")

    @classmethod
    def cancelled(cls, message: str = "Cancelled before it was done.") -> ToolResult:
        """A call that was stopped, or never started, because its turn was cancelled."""
        return cls(ToolOutcome.CANCELLED, (Text(message),), code="cancelled")

    @property
    def succeeded(self) -> bool:
        """Whether the effect took place as asked."""
        return self.outcome is ToolOutcome.SUCCEEDED

    @property
    def text(self) -> str:
        """What the model reads: `for_model`, or the text blocks joined by newlines."""
        if self.for_model is not None:
            return self.for_model
        return "\n".join(block.text for block in self.content if isinstance(block, Text))
