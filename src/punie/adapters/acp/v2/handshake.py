"""`initialize`, `auth/login` and `auth/logout` of ACP v2 (draft)."""

from __future__ import annotations

from msgspec import Raw

from punie.adapters.acp.handshake import (
    AUTH,
    AUTH_METHOD,
    EXTENSION,
    EXTENSION_OFFER,
    NO_CAPABILITIES,
    UNSTABLE_MCP,
    Dialect,
    Params,
    decode_params,
    log_in,
    named,
    terminal_methods,
)
from punie.mechanics.jsonrpc.errors import RpcError

VERSION = 2

SESSION_REQUESTS = frozenset(
    {
        "session/new",
        "session/prompt",
        "session/close",
        "session/resume",
        "session/fork",
        "session/list",
        "session/delete",
        "session/set_config_option",
        "tool_call/cancel",
        "terminal/cancel",
        "_punie.dev/executions",
        "_punie.dev/cancel_executions",
        "_punie.dev/tools",
        "_punie.dev/set_tool_enabled",
    }
)


def initialize_answer(version: str, capabilities: Raw = NO_CAPABILITIES) -> dict[str, object]:
    """What Punie can do in ACP v2: what is not said here does not work and is not offered (A-12)."""
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
            "_meta": EXTENSION_OFFER,
        },
        "authMethods": [{**AUTH, "methodId": AUTH_METHOD}, *terminal_methods(capabilities, "methodId")],
    }


def log_out(raw: Raw) -> object:
    """There is nothing to forget: keys are the environment's."""
    decode_params(raw, Params)
    return {}


def error_to_wire(error: BaseException) -> RpcError:
    """As in v1; of a session that is not open, v2 says which."""
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
    SESSION_REQUESTS,
    error_to_wire,
)
