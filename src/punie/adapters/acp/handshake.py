"""`initialize` and `authenticate`: what both sides say of themselves."""

from __future__ import annotations

from typing import TypeVar

import msgspec
from msgspec import Raw

from punie.adapters.acp.rpc_errors import INVALID_PARAMS, RpcError

PROTOCOL_VERSION = 1
AUTH_METHOD = "environment"

EXTENSION = "punie.dev"
"""The key of our extension below `_meta` (INTERFACES.md section 3)."""

DISCOVERY_VERSION = 1
EXECUTIONS_VERSION = 1
TOOLS_VERSION = 1
TOOL_EVENTS_VERSION = 1

T = TypeVar("T")


class Params(msgspec.Struct, rename="camel", gc=False):
    """Parameters of a request, or the result of one; unknown fields are ignored."""


class InitializeParams(Params):
    """`initialize`; the capabilities are kept as they came and read when the first session needs them."""

    protocol_version: int
    client_capabilities: Raw = Raw(b"{}")


class AuthenticateParams(Params):
    """`authenticate`."""

    method_id: str


def decode(raw: Raw, kind: type[T]) -> T:
    """Decode JSON of the client; raises `msgspec.ValidationError` with the field that does not fit."""
    try:
        return msgspec.json.decode(raw, type=kind)
    except RecursionError as error:
        raise msgspec.ValidationError("nested too deeply") from error


def decode_params(raw: Raw, kind: type[T]) -> T:
    """Decode a request's parameters; raises the -32602 error that names the field, and never echoes a value."""
    try:
        return decode(raw, kind)
    except msgspec.DecodeError as error:
        raise RpcError(INVALID_PARAMS, f"Invalid params: {error}") from error


def initialize_answer(version: str) -> dict[str, object]:
    """What Punie can do: what is not said here does not work and is not offered (A-12)."""
    return {
        "protocolVersion": PROTOCOL_VERSION,
        "agentCapabilities": {
            "loadSession": True,
            "promptCapabilities": {"image": True, "audio": False, "embeddedContext": True},
            "mcpCapabilities": {"http": True, "sse": True, "acp": True, "_meta": {EXTENSION: {"unstable": ["acp"]}}},
            "sessionCapabilities": {
                "close": {},
                "list": {},
                "resume": {},
                "delete": {},
                "fork": {},
                "additionalDirectories": {},
            },
            "_meta": {
                EXTENSION: {
                    "discoverTools": {"version": DISCOVERY_VERSION},
                    "executions": {"version": EXECUTIONS_VERSION},
                    "tools": {"version": TOOLS_VERSION},
                    "toolEvents": {"version": TOOL_EVENTS_VERSION},
                }
            },
        },
        "authMethods": [
            {
                "type": "agent",
                "id": AUTH_METHOD,
                "name": "Environment",
                "description": "Use the model and keys of the environment and settings, or no model at all.",
            }
        ],
        "agentInfo": {"name": "punie", "title": "Punie", "version": version},
    }
