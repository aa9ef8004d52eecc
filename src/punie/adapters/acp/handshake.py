"""`initialize` and `authenticate`: the capabilities and login methods that both sides name before any session.

The login method of type `terminal` (ACP v1 and v2, "Authentication") lets the client run Punie's command again in a
terminal, with its `args` appended to the configured command, so that a person can set up a model. The method is offered
only to clients that advertise support for it, and `authenticate` is never called for it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import TypeVar

import msgspec
from attrs import frozen
from msgspec import Raw

from punie.mechanics.jsonrpc.errors import INVALID_PARAMS, RpcError

SETUP_METHOD = "setup-model"
_NAME = "Set up a model"
_ARGS = ("--setup-model",)
NO_CAPABILITIES = Raw(b"{}")
_META = "terminal-auth"
"""The key under which Zed says the same, and reads a whole command line."""


class _Auth(msgspec.Struct, gc=False):
    terminal: Raw = Raw(b"false")


class _Meta(msgspec.Struct, gc=False):
    terminal_auth: Raw = msgspec.field(default=Raw(b"false"), name=_META)


class _Capabilities(msgspec.Struct, gc=False):
    auth: Raw = Raw(b"{}")
    meta: Raw = msgspec.field(default=Raw(b"{}"), name="_meta")


def terminal_methods(capabilities: Raw, id_key: str) -> list[dict[str, object]]:
    """The method, as one entry of `authMethods`, for a client with these capabilities; none for one without.

    `id_key` is what that version of ACP calls the method's id. What a client wrote amiss there counts as not said.
    """
    said = _read(capabilities, _Capabilities) or _Capabilities()
    auth, meta = _read(said.auth, _Auth), _read(said.meta, _Meta)
    by_meta = meta is not None and _is_said(meta.terminal_auth)
    if not by_meta and (auth is None or not _is_said(auth.terminal)):
        return []
    method: dict[str, object] = {
        "type": "terminal",
        id_key: SETUP_METHOD,
        "name": _NAME,
        "description": "Choose a model in a terminal. It is tried, and its key is kept for you.",
        "args": list(_ARGS),
    }
    if by_meta:
        # Without -P Python would look for modules in the project first.
        command: dict[str, object] = {"command": sys.executable, "args": ["-P", "-m", "punie", "acp", *_ARGS]}
        method["_meta"] = {_META: {**command, "env": {}, "label": _NAME}}
    return [method]


def _read(raw: Raw, kind: type[T]) -> T | None:
    try:
        return msgspec.json.decode(raw, type=kind)
    except (msgspec.DecodeError, RecursionError):
        return None


def _is_said(raw: Raw) -> bool:
    """`true` as v1 has it, an object as v2 has it."""
    text = bytes(raw).strip()
    return text == b"true" or text.startswith(b"{")


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
