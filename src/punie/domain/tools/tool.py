"""A tool: its description (`ToolDescriptor`), one use of it (`ToolCall`) and the outcome of that (`ToolResult`)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import cast

from attrs import field, frozen

from punie.domain.tools.metadata import ToolMetadata
from punie.domain.tools.roles import Column, Role, Roles
from punie.domain.tools.schema import ToolParameter, to_parameters, to_schema
from punie.domain.values.content import ResultContent, Text
from punie.domain.values.json_value import EMPTY_OBJECT, JsonObject, JsonValue, freeze, freeze_object, thaw, thaw_object
from punie.domain.values.terminal import KeptOutput

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
    """Who serves a tool; the policy treats all but our own as strangers."""

    BUILT_IN = "built-in"
    IDE = "ide"
    MCP = "mcp"
    PLUG_IN = "plug-in"
    PIPELINE = "pipeline"


def _names(values: Iterable[str]) -> tuple[str, ...]:
    return tuple(values)


def _optional_object(value: object) -> JsonObject | None:
    return None if value is None else freeze_object(value)


def _input_schema(value: JsonObject | Mapping[str, object] | Iterable[ToolParameter] | None) -> JsonObject:
    if value is None:
        return freeze_object({"type": "object"})
    return freeze_object(cast("object", value)) if isinstance(value, Mapping) else to_schema(value)


def _check_name(_owner: object, _attribute: object, value: str) -> None:
    if not NAME_PATTERN.fullmatch(value):
        raise ValueError(f"{value!r} is not a tool name: use 1 to 64 of A-Z a-z 0-9 _ -")


@frozen
class ToolDescriptor:
    """One tool as a session offers it; immutable, lives as long as the catalogue that lists it.

    `parameters` is the input's JSON Schema, kept as the same JSON value with its key order; it may be given as a list
    of `ToolParameter` instead. `metadata` keeps the
    keys of a catalogue entry that we do not know; `details` is everything optional that we do. `roles` say what the
    parameters mean, as a mapping of names; `column` is the column of the table of modes for a tool of ours, or one
    that somebody else serves by the same name, None for any other. Neither travels. Raises `ValueError` for a name no
    provider would accept.
    """

    name: str = field(validator=_check_name)
    kind: ToolKind = field(default=ToolKind.OTHER, converter=ToolKind.parse)
    description: str = ""
    parameters: JsonObject = field(default=None, converter=_input_schema)
    title: str | None = None
    requires_permission: bool = False
    categories: tuple[str, ...] = field(default=(), converter=_names)
    tags: tuple[str, ...] = field(default=(), converter=_names)
    annotations: JsonObject = field(default=EMPTY_OBJECT, converter=freeze_object)
    output_schema: JsonObject | None = field(default=None, converter=_optional_object)
    metadata: JsonObject = field(default=EMPTY_OBJECT, converter=freeze_object)
    source: ToolSource = ToolSource.BUILT_IN
    details: ToolMetadata = field(factory=ToolMetadata)
    roles: Roles = field(factory=Roles, converter=Roles.of)
    column: Column | None = None

    @property
    def destructive(self) -> bool:
        """Whether its annotations say so (MCP's `destructiveHint`)."""
        return self.annotations.get("destructiveHint") is True

    @property
    def gives_file(self) -> bool:
        """Whether the result is the text of the file that the call names: as long as the file, and to be had again."""
        return self.column is Column.READ and Role.PATH_READ in self.roles

    @property
    def parameter_list(self) -> tuple[ToolParameter, ...]:
        """The parameters one by one (S2-44). Raises `SchemaFormError` for a schema without such."""
        return to_parameters(self.parameters)


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
    `code` names the error of a call that did not succeed. `metadata` is what else its maker wants to hand on;
    `duration_ms` is how long the effect took, None where nothing ran or nobody measured. `kept` is the file with all
    of an output of which `text` has only the end.
    """

    outcome: ToolOutcome
    content: tuple[ResultContent, ...] = ()
    structured: JsonValue = field(default=None, converter=freeze)
    for_model: str | None = None
    code: str | None = None
    metadata: JsonObject = field(default=EMPTY_OBJECT, converter=freeze_object)
    duration_ms: float | None = None
    kept: KeptOutput | None = None

    @classmethod
    def success(
        cls,
        text: str,
        *,
        content: tuple[ResultContent, ...] | None = None,
        structured: object = None,
        metadata: Mapping[str, object] = EMPTY_OBJECT,
    ) -> ToolResult:
        """A call that did its work; `content` is shown to the client instead of `text` where given."""
        shown, for_model = ((Text(text),), None) if content is None else (content, text)
        return cls(ToolOutcome.SUCCEEDED, shown, structured=structured, for_model=for_model, metadata=metadata)

    @classmethod
    def failure(
        cls,
        message: str,
        *,
        code: str = "tool_failed",
        structured: object = None,
        metadata: Mapping[str, object] = EMPTY_OBJECT,
    ) -> ToolResult:
        """A call that failed; `message` is a whole sentence that both the model and the person read."""
        said = (Text(message or "The tool failed."),)
        return cls(ToolOutcome.FAILED, said, structured=structured, code=code, metadata=metadata)

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

    @property
    def is_successful(self) -> bool:
        """As `succeeded`, by the name that tool frameworks use (S2-68)."""
        return self.succeeded

    @property
    def data(self) -> JsonValue:
        """What a program takes from it: `structured`, or the text where there is none."""
        return self.message if self.structured is None else self.structured

    @property
    def message(self) -> str:
        """What a person is told of it: the text."""
        return self.text

    @property
    def error_message(self) -> str | None:
        """Why it did not succeed; None where it did."""
        return None if self.succeeded else self.text or f"The call {self.outcome.value}."


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
