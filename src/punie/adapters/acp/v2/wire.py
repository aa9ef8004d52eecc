"""ACP v2's messages from the client, where they differ from v1's."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from attrs import evolve
from msgspec import Raw

from punie.adapters.acp.handshake import Params, decode
from punie.adapters.acp.wire import KeptSessionParams, shared_capabilities
from punie.domain.tools.discovery import ClientCapabilities
from punie.mechanics.jsonrpc.errors import INVALID_PARAMS, RpcError

TRANSPORTS = ("stdio", "http", "acp")
"""What a client's MCP servers may be reached by."""


class Tagged(Params):
    """What is of one kind or another."""

    type: str


class ResumeParams(KeptSessionParams, kw_only=True):
    """`session/resume`."""

    replay_from: Tagged | None = None


class SetConfigOptionParams(Params):
    """`session/set_config_option`."""

    session_id: str
    config_id: str
    type: str
    value: Raw


class ToolCallParams(Params):
    """`tool_call/cancel`."""

    session_id: str
    tool_call_id: str


class TerminalParams(Params):
    """`terminal/cancel`."""

    session_id: str
    terminal_id: str


def decode_capabilities(raw: Raw) -> ClientCapabilities:
    """What the client can do: no files and no terminals in v2, and updates need no capability."""
    return evolve(shared_capabilities(raw), notices=True, compaction=True)


def check_transports(servers: Sequence[Raw] | None) -> None:
    """Refuse a session with a server that is reached in a way we did not offer, as v2 demands. Raises `RpcError`."""
    for position, server in enumerate(servers or (), start=1):
        try:
            kind = decode(server, Tagged).type
        except msgspec.DecodeError as error:
            raise RpcError(INVALID_PARAMS, f"Invalid params: mcpServers, entry {position}: {error}") from error
        if kind not in TRANSPORTS:
            known = ", ".join(TRANSPORTS)
            raise RpcError(
                INVALID_PARAMS, f"Invalid params: mcpServers, entry {position}: its type is none of {known}."
            )
