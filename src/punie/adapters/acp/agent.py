"""Punie as ACP v1's agent: methods to use cases, results and errors back (room 2 of the corridor)."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from pathlib import PurePath

import anyio
from msgspec import Raw

from punie import __version__
from punie.adapters.acp.blocks import BlockError, decode_block
from punie.adapters.acp.client import AcpEventSink, AcpPermissionBroker, AcpTerminals, AcpWorkspace
from punie.adapters.acp.discovery import TOOLS_CHANGED, AcpToolBridge, AcpToolCatalog
from punie.adapters.acp.errors import to_wire
from punie.adapters.acp.jsonrpc import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    Connection,
    RequestId,
    Router,
    RpcError,
)
from punie.adapters.acp.wire import (
    DISCOVERY_VERSION,
    EXTENSION,
    AuthenticateParams,
    InitializeParams,
    NewSessionParams,
    PromptParams,
    SessionParams,
    decode_capabilities,
    decode_params,
)
from punie.domain.content import Prompt
from punie.domain.discovery import ClientCapabilities
from punie.domain.session import DiscoveryReport, SessionSpec
from punie.domain.turn import TurnReport
from punie.domain.usage import Usage
from punie.ports.agent import Agent, RunningTurn
from punie.ports.peer import Peer

PROTOCOL_VERSION = 1
AUTH_METHOD = "environment"

Handler = Callable[[Raw], Awaitable[object]]


class AcpAgent(Router):
    """One connection's agent role: knows what its client can do, and hands everything else on. Lives as long as it.

    `initialized` is set when `initialize` was answered; only then may anything heavy be loaded (DESIGN.md section 7).
    """

    def __init__(self, agent: Agent, connection: Connection, log: logging.Logger) -> None:
        self.initialized = anyio.Event()
        self._agent = agent
        self._connection = connection
        self._log = log
        self._capabilities: ClientCapabilities | None = None
        self._requests: Mapping[str, Handler] = {
            "authenticate": self._authenticate,
            "session/new": self._new_session,
            "session/prompt": self._prompt,
            "session/close": self._close_session,
        }

    def request(self, method: str, params: Raw, request_id: RequestId) -> Awaitable[object]:
        if method == "initialize":
            return self._initialize(params)
        handler = self._requests.get(method)
        if self._capabilities is None:
            raise RpcError(INVALID_REQUEST, "Send initialize first; nothing else is answered before it.")
        if handler is None:
            raise RpcError(METHOD_NOT_FOUND, "This agent does not know that method.")
        return handler(params)

    def notification(self, method: str, params: Raw) -> None:
        if method == "session/cancel":
            self._agent.cancel(decode_params(params, SessionParams).session_id)
        elif method == TOOLS_CHANGED:
            self._agent.tools_changed(decode_params(params, SessionParams).session_id)
        else:
            self._log.info("ignored an unknown notification")

    def error(self, exc: BaseException) -> RpcError:
        return to_wire(exc)

    def _initialize(self, raw: Raw) -> Awaitable[object]:
        """Takes effect before the next line is read: a client may send session/new right behind."""
        params = decode_params(raw, InitializeParams)
        self._capabilities = decode_capabilities(params.client_capabilities)
        self._log.info("initialized with %s", self._capabilities)
        self.initialized.set()
        return _initialized()

    async def _authenticate(self, raw: Raw) -> object:
        if decode_params(raw, AuthenticateParams).method_id != AUTH_METHOD:
            raise RpcError(INVALID_PARAMS, f"Unknown methodId; this agent offers {AUTH_METHOD!r}.")
        return {}

    async def _new_session(self, raw: Raw) -> object:
        params = decode_params(raw, NewSessionParams)
        if not PurePath(params.cwd).is_absolute() or "\0" in params.cwd:
            raise RpcError(INVALID_PARAMS, "cwd must be an absolute path.")
        for what, given in (
            ("mcpServers", params.mcp_servers),
            ("additionalDirectories", params.additional_directories),
        ):
            if given:
                self._log.warning("session/new: %d %s given; not used by this version", len(given), what)
        spec = SessionSpec(params.cwd)
        opened = await self._agent.open_session(spec, lambda session_id: self._peer(session_id, spec))
        return {"sessionId": opened.id, "_meta": {EXTENSION: {"discovery": _discovery(opened.discovery)}}}

    def _prompt(self, raw: Raw) -> Awaitable[object]:
        """Accepts the prompt before the next line is read, so that a cancel right behind it finds the turn."""
        params = decode_params(raw, PromptParams)
        try:
            prompt = Prompt(tuple(decode_block(block) for block in params.prompt))
        except BlockError as error:
            raise RpcError(INVALID_PARAMS, f"Invalid params: {error}") from error
        return _answered(self._agent.begin_turn(params.session_id, prompt))

    async def _close_session(self, raw: Raw) -> object:
        await self._agent.close_session(decode_params(raw, SessionParams).session_id)
        return {}

    def _peer(self, session_id: str, spec: SessionSpec) -> Peer:
        """The client's side of one session: only what it advertised (A-02)."""
        connection, can = self._connection, self._capabilities or ClientCapabilities()
        files = can.read_text_file or can.write_text_file
        return Peer(
            capabilities=can,
            broker=AcpPermissionBroker(connection, session_id),
            events=AcpEventSink(connection, session_id),
            workspace=AcpWorkspace(connection, session_id) if files else None,
            terminals=AcpTerminals(connection, session_id) if can.terminal else None,
            catalog=AcpToolCatalog(connection, session_id, spec.cwd, self._log) if can.discover_tools else None,
            bridge=AcpToolBridge(connection, session_id) if can.discover_tools else None,
        )


async def _initialized() -> object:
    return {
        "protocolVersion": PROTOCOL_VERSION,
        "agentCapabilities": {
            "loadSession": False,
            "promptCapabilities": {"image": True, "audio": False, "embeddedContext": True},
            "mcpCapabilities": {"http": False, "sse": False},
            "sessionCapabilities": {"close": {}},
            "_meta": {EXTENSION: {"discoverTools": {"version": DISCOVERY_VERSION}}},
        },
        "authMethods": [
            {
                "type": "agent",
                "id": AUTH_METHOD,
                "name": "Environment",
                "description": "Use the model and keys of the environment and settings, or no model at all.",
            }
        ],
        "agentInfo": {"name": "punie", "title": "Punie", "version": __version__},
    }


async def _answered(turn: RunningTurn) -> object:
    return encode_report(await turn.run())


def encode_report(report: TurnReport) -> dict[str, object]:
    """The answer to `session/prompt`; what was used goes into `_meta`, where ACP v1 has no stable field for it."""
    answer: dict[str, object] = {"stopReason": report.stop_reason.value}
    if report.usage != Usage():
        answer["_meta"] = {EXTENSION: {"usage": encode_usage(report.usage)}}
    return answer


def encode_usage(usage: Usage) -> dict[str, object]:
    """Usage as our own JSON has it."""
    encoded: dict[str, object] = {
        "inputTokens": usage.input_tokens,
        "outputTokens": usage.output_tokens,
        "cachedReadTokens": usage.cached_read_tokens,
        "cachedWriteTokens": usage.cached_write_tokens,
        "requests": usage.requests,
    }
    return encoded if usage.cost_usd is None else {**encoded, "costUsd": usage.cost_usd}


def _discovery(report: DiscoveryReport) -> dict[str, object]:
    return {
        "tier": report.tier.value,
        "tools": report.tools,
        "dropped": [{"name": entry.name, "reason": entry.reason} for entry in report.dropped],
        "elapsedMs": report.elapsed_ms,
    }
