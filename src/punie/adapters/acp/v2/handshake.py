"""`initialize`, `auth/login` and `auth/logout` of ACP v2 (draft)."""

from __future__ import annotations

from msgspec import Raw

from punie.adapters.acp.handshake import (
    AUTH,
    AUTH_METHOD,
    EXTENSION,
    NO_CAPABILITIES,
    SESSION_REQUESTS,
    UNSTABLE_MCP,
    Dialect,
    Params,
    decode_params,
    extension_offer,
    log_in,
    named,
    terminal_methods,
)
from punie.mechanics.jsonrpc.errors import RpcError

VERSION = 2


def initialize_answer(version: str, capabilities: Raw = NO_CAPABILITIES) -> dict[str, object]:
    """The result of `initialize` in version 2; a capability that is missing here is not supported."""
    return {
        "protocolVersion": VERSION,
        "info": named(version),
        "capabilities": {
            "session": {
                "prompt": {"image": {}, "embeddedContext": {}},
                "mcp": {"stdio": {}, "http": {}, "acp": {}, "_meta": UNSTABLE_MCP},
                "delete": {},
                "fork": {},
                "additionalDirectories": {},
                "_meta": {EXTENSION: {"unstable": ["fork"]}},
            },
            "_meta": extension_offer(capabilities),
        },
        "authMethods": [{**AUTH, "methodId": AUTH_METHOD}, *terminal_methods(capabilities, "methodId")],
    }


def log_out(raw: Raw) -> object:
    """`auth/logout`: does nothing, since keys belong to the environment."""
    decode_params(raw, Params)
    return {}


def error_to_wire(error: BaseException) -> RpcError:
    """The error of v1, whose data names the session where that is not open."""
    from punie.adapters.acp.errors import to_wire
    from punie.domain.errors import UnknownSessionError

    wire = to_wire(error)
    if isinstance(error, UnknownSessionError):
        wire.data = {"sessionId": error.session_id}
    return wire


V2 = Dialect(
    VERSION,
    initialize_answer,
    lambda params: params.capabilities,
    {"auth/login": log_in, "auth/logout": log_out},
    SESSION_REQUESTS | {"tool_call/cancel", "terminal/cancel"},
    error_to_wire,
)
