"""ACP v1's messages from the client, as msgspec types: strict where a mistake matters, tolerant where ACP is.

Fields that may be absent may be null. What is a union on the wire is kept as `Raw` and decoded by hand, so that an
unknown variant is one variant lost and not the whole message. Field names follow ACP's own.
"""

from __future__ import annotations

import msgspec
from attrs import evolve
from msgspec import Raw

from punie.adapters.acp.handshake import DISCOVERY_VERSION, EXTENSION, TOOL_EVENTS_VERSION, Params
from punie.domain.tools.discovery import ClientCapabilities


class NewSessionParams(Params):
    """`session/new`."""

    cwd: str
    mcp_servers: list[Raw] | None = None
    additional_directories: list[str] | None = None


class KeptSessionParams(NewSessionParams, kw_only=True):
    """`session/load`, `session/resume` and `session/fork`."""

    session_id: str


class ListSessionsParams(Params):
    """`session/list`."""

    cwd: str | None = None
    cursor: str | None = None


class PromptParams(Params):
    """`session/prompt`."""

    session_id: str
    prompt: list[Raw]


class SessionParams(Params):
    """Every message that only names its session."""

    session_id: str


class ReadAnswer(Params):
    """The answer to `fs/read_text_file`."""

    content: str


class CreateTerminalAnswer(Params):
    """The answer to `terminal/create`."""

    terminal_id: str


class ExitAnswer(Params):
    """The answer to `terminal/wait_for_exit`, and the status inside `terminal/output`'s."""

    exit_code: int | None = None
    signal: str | None = None


class OutputAnswer(Params):
    """The answer to `terminal/output`."""

    output: str
    truncated: bool = False
    exit_status: ExitAnswer | None = None


class SelectedAnswer(Params):
    """The inner outcome of `session/request_permission`."""

    outcome: str
    option_id: str | None = None


class PermissionAnswer(Params):
    """The answer to `session/request_permission`."""

    outcome: SelectedAnswer


class DiscoverAnswer(Params):
    """One page of `_punie.dev/discover_tools`; entries are looked at one by one."""

    tools: list[Raw]
    next_cursor: str | None = None
    extends: Raw = Raw(b"false")


class CallAnswer(Params):
    """The answer to `_punie.dev/call_tool`."""

    content: list[Raw]
    is_error: bool | None = None
    structured_content: Raw = Raw(b"null")


def decode_capabilities(raw: Raw) -> ClientCapabilities:
    """What the client can do. Anything that is not the literal ACP asks for counts as unsupported (A-02)."""
    capabilities = _members(raw)
    files, session = _members(capabilities.get("fs")), _members(capabilities.get("session"))
    return evolve(
        shared_capabilities(raw),
        read_text_file=is_true(files.get("readTextFile")),
        write_text_file=is_true(files.get("writeTextFile")),
        terminal=is_true(capabilities.get("terminal")),
        notices=_is_object(session.get("notices")),
        compaction=_is_object(session.get("compaction")),
    )


def shared_capabilities(raw: Raw) -> ClientCapabilities:
    """What every version of ACP says in the same words: forms, and our extension."""
    capabilities = _members(raw)
    extension = _members(_members(capabilities.get("_meta")).get(EXTENSION))
    return ClientCapabilities(
        discover_tools=_announces(extension, "discoverTools", DISCOVERY_VERSION),
        tool_events=_announces(extension, "toolEvents", TOOL_EVENTS_VERSION),
        elicitation_form=_is_object(_members(capabilities.get("elicitation")).get("form")),
    )


def _announces(extension: dict[str, Raw], part: str, version: int) -> bool:
    said = _members(extension.get(part)).get("version", Raw(b"null"))
    return bytes(said).strip() == str(version).encode()


def _is_object(raw: Raw | None) -> bool:
    """Whether it is an object, which is how ACP says yes to what may have details."""
    return raw is not None and bytes(raw).lstrip().startswith(b"{")


def is_true(raw: Raw | None) -> bool:
    """Whether the JSON is exactly `true`."""
    return raw is not None and bytes(raw).strip() == b"true"


def _members(raw: Raw | None) -> dict[str, Raw]:
    if raw is None:
        return {}
    try:
        return msgspec.json.decode(raw, type=dict[str, Raw])
    except (msgspec.DecodeError, RecursionError):
        return {}
