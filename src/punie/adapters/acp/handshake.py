"""`initialize` and `authenticate`: what both sides say of themselves."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

import msgspec
from attrs import frozen
from msgspec import Raw

from punie.adapters.acp.terminal_login import NO_CAPABILITIES, SETUP_METHOD, terminal_methods
from punie.mechanics.jsonrpc.errors import INVALID_PARAMS, RpcError

PROTOCOL_VERSION = 1
AUTH_METHOD = "environment"

EXTENSION = "punie.dev"
"""The key of Punie's extension below `_meta` (docs/interfaces.md)."""

DISCOVERY_VERSION = 1
EXECUTIONS_VERSION = 1
TOOLS_VERSION = 1
TOOL_EVENTS_VERSION = 1

T = TypeVar("T")


class Params(msgspec.Struct, rename="camel", gc=False):
    """Parameters of a request, or the result of one; unknown fields are ignored."""


class InitializeParams(Params):
    """`initialize`; the capabilities are kept as they came and read when the first session needs them.

    `client_capabilities` are those of version 1, `capabilities` those of version 2.
    """

    protocol_version: int
    client_capabilities: Raw = Raw(b"{}")
    capabilities: Raw = Raw(b"{}")


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


@frozen
class Dialect:
    """What one version of ACP says as long as no session is there; a constant of the process.

    `answer` makes the result of `initialize` from Punie's version and the client's capabilities, `login` are the
    methods about who somebody is, each of which takes its parameters at once and gives its result, and `sessions` the
    names of those that sessions answer.
    `error` puts what a handler raised into the words of the wire.
    """

    version: int
    answer: Callable[[str, Raw], dict[str, object]]
    capabilities: Callable[[InitializeParams], Raw]
    login: Mapping[str, Callable[[Raw], object]]
    sessions: frozenset[str]
    error: Callable[[BaseException], RpcError]


def log_in(raw: Raw) -> object:
    """`authenticate`, and `auth/login` of version 2: there is one way, and it asks nothing."""
    method = decode_params(raw, AuthenticateParams).method_id
    if method == SETUP_METHOD:
        raise RpcError(INVALID_PARAMS, f"{method!r} is not asked for here: run the agent's command with its args.")
    if method != AUTH_METHOD:
        raise RpcError(INVALID_PARAMS, f"Unknown methodId; this agent offers {AUTH_METHOD!r}.")
    return {}


AUTH = {
    "type": "agent",
    "name": "Environment",
    "description": "Use the model and keys of the environment and settings, or no model at all.",
}

EXTENSION_OFFER = {
    EXTENSION: {
        "discoverTools": {"version": DISCOVERY_VERSION},
        "executions": {"version": EXECUTIONS_VERSION},
        "tools": {"version": TOOLS_VERSION},
        "toolEvents": {"version": TOOL_EVENTS_VERSION},
    }
}
"""What of our extension works, for the `_meta` of the agent's capabilities."""

UNSTABLE_MCP = {EXTENSION: {"unstable": ["acp"]}}
"""MCP over ACP is of no stable schema yet, in either version."""


def named(version: str) -> dict[str, object]:
    """Who we are."""
    return {"name": "punie", "title": "Punie", "version": version}


def initialize_answer(version: str, capabilities: Raw = NO_CAPABILITIES) -> dict[str, object]:
    """What Punie can do: what is not said here does not work and is not offered (A-12)."""
    return {
        "protocolVersion": PROTOCOL_VERSION,
        "agentCapabilities": {
            "loadSession": True,
            "promptCapabilities": {"image": True, "audio": False, "embeddedContext": True},
            "mcpCapabilities": {"http": True, "sse": True, "acp": True, "_meta": UNSTABLE_MCP},
            "sessionCapabilities": {
                "close": {},
                "list": {},
                "resume": {},
                "delete": {},
                "fork": {},
                "additionalDirectories": {},
            },
            "_meta": EXTENSION_OFFER,
        },
        "authMethods": [{**AUTH, "id": AUTH_METHOD}, *terminal_methods(capabilities, "id")],
        "agentInfo": named(version),
    }
