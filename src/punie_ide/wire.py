"""The messages of an agent to a client, decoded to values (ACP schema, client side).

Lenient where ACP is: an unknown variant is skipped, an optional field may be null. Other faults raise
`msgspec.DecodeError`, which the router answers as invalid parameters.
"""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec
from msgspec import Raw

from punie.api import Diff, OptionKind, PermissionOption, ResultContent, TerminalView, Text
from punie_ide.events import CallAnnounced, CallMoved, IdeEvent, TextSaid, ThoughtSaid, UpdateSkipped
from punie_ide.permission import Question

T = TypeVar("T")


class Params(msgspec.Struct, rename="camel", kw_only=True):
    """The parameters of a message, which all name their session."""

    session_id: str


class ReadParams(Params):
    """fs/read_text_file."""

    path: str
    line: int | None = None
    limit: int | None = None


class WriteParams(Params):
    """fs/write_text_file."""

    path: str
    content: str


class EnvVariable(msgspec.Struct):
    """One variable of a program's environment."""

    name: str
    value: str


class CreateParams(Params):
    """terminal/create."""

    command: str
    args: list[str] | None = None
    env: list[EnvVariable] | None = None
    cwd: str | None = None
    output_byte_limit: int | None = None


class TerminalParams(Params):
    """terminal/output, wait_for_exit, kill and release."""

    terminal_id: str


class DiscoverParams(Params):
    """_punie.dev/discover_tools; `session_id` is the one that the pending session/new will answer."""

    cwd: str = ""
    cursor: str | None = None


class CallParams(Params):
    """_punie.dev/call_tool."""

    name: str
    tool_call_id: str = ""
    arguments: dict[str, Any] = {}


class UpdateParams(Params):
    """session/update."""

    update: Raw


class _Option(msgspec.Struct, rename="camel"):
    option_id: str
    name: str
    kind: str


class _Location(msgspec.Struct):
    path: str


class _Card(msgspec.Struct, rename="camel"):
    """A tool call or an update of one; absent and null both mean unchanged."""

    tool_call_id: str
    title: str | None = None
    kind: str | None = None
    status: str | None = None
    content: list[Raw] | None = None
    locations: list[_Location] | None = None
    raw_input: Any = None
    raw_output: Any = None

    @property
    def paths(self) -> tuple[str, ...]:
        return tuple(location.path for location in self.locations or ())

    @property
    def parts(self) -> tuple[ResultContent, ...] | None:
        if self.content is None:
            return None
        return tuple(part for raw in self.content if (part := _decode_part(raw)) is not None)


class _Ours(msgspec.Struct):
    """Punie's additions below `_meta["punie.dev"]`."""

    discovery: dict[str, Any] = {}
    reason: str = ""


class _Meta(msgspec.Struct):
    punie: _Ours = msgspec.field(name="punie.dev", default_factory=_Ours)


class _PermissionParams(Params):
    tool_call: _Card
    options: list[_Option]
    meta: Raw = msgspec.field(name="_meta", default=Raw(b"{}"))


class _Kind(msgspec.Struct, rename="camel"):
    session_update: str


class _Block(msgspec.Struct):
    type: str
    text: str = ""


class _Chunk(msgspec.Struct):
    content: _Block


class _Part(msgspec.Struct, rename="camel"):
    type: str = "content"
    content: _Block | None = None
    path: str = ""
    old_text: str | None = None
    new_text: str = ""
    terminal_id: str = ""


class InitializeResult(msgspec.Struct, rename="camel"):
    """The answer to `initialize`."""

    protocol_version: int
    agent_capabilities: dict[str, Any] | None = None
    agent_info: dict[str, Any] | None = None
    auth_methods: list[Any] | None = None


class _NewSessionResult(msgspec.Struct, rename="camel"):
    session_id: str
    meta: Raw = msgspec.field(name="_meta", default=Raw(b"{}"))


class PromptResult(msgspec.Struct, rename="camel"):
    """The answer to `session/prompt`."""

    stop_reason: str


def decode(raw: Raw, kind: type[T]) -> T:
    """Parameters or a result as that type. Raises `msgspec.DecodeError`, also for JSON that nests too deep."""
    try:
        return msgspec.json.decode(raw, type=kind)
    except RecursionError:
        raise msgspec.DecodeError("the JSON nests too deep") from None


def decode_question(raw: Raw) -> Question:
    """A permission request; options of unknown kinds are left out."""
    params = decode(raw, _PermissionParams)
    known = {kind.value for kind in OptionKind}
    options = tuple(
        PermissionOption(option.option_id, option.name, OptionKind(option.kind))
        for option in params.options
        if option.kind in known
    )
    card = params.tool_call
    return Question(
        params.session_id, card.tool_call_id, card.title or "", card.kind or "other", options,
        locations=card.paths, content=card.parts or (), raw_input=card.raw_input, reason=_ours(params.meta).reason,
    )  # fmt: skip


def decode_session(raw: Raw) -> tuple[str, dict[str, Any]]:
    """The id of a new session and the agent's report on discovery, which may be empty."""
    result = decode(raw, _NewSessionResult)
    return result.session_id, _ours(result.meta).discovery


def _ours(meta: Raw) -> _Ours:
    try:
        return decode(meta, _Meta).punie
    except msgspec.DecodeError:
        return _Ours()  # no meta, or a foreign one of the same name


def decode_update(raw: Raw) -> IdeEvent:
    """One update of a session; of an unknown kind it is an `UpdateSkipped`."""
    kind = decode(raw, _Kind).session_update
    if kind == "agent_message_chunk":
        return TextSaid(decode(raw, _Chunk).content.text)
    if kind == "agent_thought_chunk":
        return ThoughtSaid(decode(raw, _Chunk).content.text)
    if kind == "tool_call":
        card = decode(raw, _Card)
        return CallAnnounced(
            card.tool_call_id, card.title or "", card.kind or "other", card.status or "pending",
            locations=card.paths, content=card.parts or (), raw_input=card.raw_input,
        )  # fmt: skip
    if kind == "tool_call_update":
        card = decode(raw, _Card)
        return CallMoved(card.tool_call_id, card.status, card.title, card.parts, card.raw_output, card.paths or None)
    return UpdateSkipped(kind, msgspec.json.decode(raw))


def _decode_part(raw: Raw) -> ResultContent | None:
    part = decode(raw, _Part)
    if part.type == "diff":
        return Diff(part.path, part.old_text, part.new_text)
    if part.type == "terminal":
        return TerminalView(part.terminal_id)
    if part.type == "content" and part.content is not None and part.content.type == "text":
        return Text(part.content.text)
    return None
