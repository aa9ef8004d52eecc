"""Punie as ACP v1's agent: the handshake, and where each method leads (room 2 of the corridor).

This module is on the path to the `initialize` answer and imports nothing that only sessions need (DESIGN.md section 7).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

import anyio
from msgspec import Raw

from punie import __version__
from punie.adapters.acp.handshake import (
    AUTH_METHOD,
    AuthenticateParams,
    InitializeParams,
    decode_params,
    initialize_answer,
)
from punie.adapters.acp.incoming import RequestId, Router
from punie.adapters.acp.rpc_errors import INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND, RpcError

if TYPE_CHECKING:
    import logging

    from punie.adapters.acp.sessions import SessionMethods

SESSION_REQUESTS = frozenset(
    {
        "session/new",
        "session/prompt",
        "session/close",
        "session/load",
        "session/resume",
        "session/fork",
        "session/list",
        "session/delete",
        "session/set_mode",
        "session/set_config_option",
        "session/set_model",
        "_punie.dev/executions",
        "_punie.dev/cancel_executions",
        "_punie.dev/tools",
        "_punie.dev/set_tool_enabled",
    }
)


class AcpAgent(Router):
    """One connection's agent role; lives as long as the connection.

    `sessions` gives the methods of sessions once they are loaded, and is first awaited by `session/new`.
    `initialized` is set when `initialize` was understood; only then may anything heavy be loaded.
    """

    def __init__(self, sessions: Callable[[], Awaitable[SessionMethods]], log: logging.Logger) -> None:
        self.initialized = anyio.Event()
        self._load_sessions = sessions
        self._sessions: SessionMethods | None = None
        self._capabilities: Raw | None = None
        self._log = log

    def request(self, method: str, params: Raw, request_id: RequestId) -> Awaitable[object]:
        if method == "initialize":
            return self._initialize(params)
        if self._capabilities is None:
            raise RpcError(INVALID_REQUEST, "Send initialize first; nothing else is answered before it.")
        if method == "authenticate":
            return self._authenticate(params)
        if method not in SESSION_REQUESTS:
            raise RpcError(METHOD_NOT_FOUND, "This agent does not know that method.")
        if self._sessions is None:
            # Nothing is open yet: whatever is asked may wait for the methods of sessions.
            return self._first(method, params)
        return self._sessions.request(method, params)

    def notification(self, method: str, params: Raw) -> None:
        if self._sessions is None or not self._sessions.notification(method, params):
            self._log.info("ignored a notification that means nothing here")

    def error(self, exc: BaseException) -> RpcError:
        if isinstance(exc, RpcError):
            return exc
        from punie.adapters.acp.errors import to_wire

        return to_wire(exc)

    def _initialize(self, raw: Raw) -> Awaitable[object]:
        """Takes effect before the next line is read: a client may send session/new right behind."""
        params = decode_params(raw, InitializeParams)
        self._capabilities = params.client_capabilities
        if self._sessions is not None:
            self._sessions.meet(self._capabilities)
        self.initialized.set()
        return _ready(initialize_answer(__version__))

    async def _authenticate(self, raw: Raw) -> object:
        if decode_params(raw, AuthenticateParams).method_id != AUTH_METHOD:
            raise RpcError(INVALID_PARAMS, f"Unknown methodId; this agent offers {AUTH_METHOD!r}.")
        return {}

    async def _first(self, method: str, raw: Raw) -> object:
        sessions = await self._load_sessions()
        if self._sessions is None:
            sessions.meet(self._capabilities or Raw(b"{}"))
            self._sessions = sessions
        return await self._sessions.request(method, raw)


async def _ready(answer: object) -> object:
    return answer
