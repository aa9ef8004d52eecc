"""The methods of sessions in ACP v2 (draft), as far as they differ from those of v1."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from weakref import WeakValueDictionary

import anyio
import msgspec
from anyio.abc import TaskGroup
from attrs import evolve
from msgspec import Raw

from punie.adapters.acp.config_options import set_option
from punie.adapters.acp.handshake import Params, decode, decode_params
from punie.adapters.acp.sessions import OF_THE_EXTENSION, OfTheAgent, SessionMethods, decode_prompt, discovered
from punie.adapters.acp.v2.activity import State, Update, state_update
from punie.adapters.acp.v2.client import DraftElicitor, DraftEventSink, DraftPermissionBroker
from punie.adapters.acp.v2.foreground import END_LIMIT_S, Foreground, MessageIds
from punie.adapters.acp.v2.terminals import Screen, ShownTerminals
from punie.adapters.acp.v2.updates import Updates, encode_options
from punie.adapters.acp.wire import (
    KeptSessionParams,
    NewSessionParams,
    PromptParams,
    SessionParams,
    shared_capabilities,
)
from punie.domain.errors import UnknownSessionError
from punie.domain.session.log import LoggedEvent
from punie.domain.session.session import OpenedSession, SessionSpec
from punie.domain.tools.catalog import ClientCapabilities
from punie.domain.values.content import Prompt
from punie.mechanics.jsonrpc.connection import Connection
from punie.mechanics.jsonrpc.errors import INVALID_PARAMS, RpcError
from punie.ports.agent import Agent
from punie.ports.people import Peer
from punie.ports.workspace import Terminals


def set_config_option(agent: Agent, raw: Raw) -> Awaitable[object]:
    """`session/set_config_option`; every option of Punie takes the id of a value, and the answer has them all."""
    params = decode_params(raw, SetConfigOptionParams)
    if params.type != "id":
        raise RpcError(INVALID_PARAMS, "The options of this agent take values of the type 'id'.")
    value = decode_params(params.value, str)
    return set_option(agent, params.session_id, params.config_id, value, encode_options)


async def cancel_tool_call(agent: Agent, raw: Raw) -> object:
    """`tool_call/cancel`: the call ends and its turn goes on."""
    params = decode_params(raw, ToolCallParams)
    running = {call.correlation_id for call in agent.running_calls(params.session_id)}
    if params.tool_call_id not in running or not agent.cancel_calls(params.session_id, params.tool_call_id):
        raise RpcError(INVALID_PARAMS, "No call of that id is running in this session.")
    return {}


_OF_THE_AGENT: OfTheAgent = {
    "session/set_config_option": set_config_option,
    "tool_call/cancel": cancel_tool_call,
    **OF_THE_EXTENSION,
}


class DraftSessionMethods(SessionMethods):
    """The requests and notifications about sessions in ACP v2; bound to one connection, lives as long as it.

    `turns` runs the prompts and ends with the connection; a turn ends with it or is adopted by the next connection.
    `terminals` are the shown terminals by session id; they outlive a connection where sessions do.
    """

    _of_the_agent = _OF_THE_AGENT

    def __init__(
        self,
        agent: Agent,
        connection: Connection,
        log: logging.Logger,
        turns: TaskGroup,
        terminals: WeakValueDictionary[str, ShownTerminals] | None = None,
    ) -> None:
        super().__init__(agent, connection, log)
        self._turns = turns
        self._open: dict[str, Foreground] = {}
        self._methods = {**self._methods, "session/resume": self._resume, "terminal/cancel": self._cancel_terminal}
        self._opening: WeakValueDictionary[str, Foreground] = WeakValueDictionary()
        self._terminals = WeakValueDictionary[str, ShownTerminals]() if terminals is None else terminals

    def _can(self, capabilities: Raw) -> ClientCapabilities:
        """As in v1; v2 has no files and terminals of the client, and no capability for updates."""
        return evolve(shared_capabilities(capabilities), notices=True, compaction=True)

    def _spec(self, params: NewSessionParams) -> SessionSpec:
        check_transports(params.mcp_servers)
        return super()._spec(params)

    async def _resume(self, raw: Raw) -> object:
        """`session/resume`; replays the history where that is asked for, and sends the state before its answer."""
        params = decode_params(raw, ResumeParams)
        if params.replay_from is not None and params.replay_from.type != "start":
            raise RpcError(INVALID_PARAMS, "This agent replays from the start, or not at all.")
        replayed = params.replay_from is not None
        opened = await self._taken_up(params, replayed=replayed)
        answer = self._opened(opened)
        self._look_on(opened.id)
        foreground = self._open[opened.id]
        if not foreground.working:
            foreground.tell(state_update(State.IDLE))
        elif replayed:
            foreground.offer_cancel()
        return answer

    def _look_on(self, session_id: str) -> None:
        """Show the terminals of a session that stayed open to this client from now on."""
        terminals = self._terminals.get(session_id)
        if terminals is not None and terminals.screen.tasks is not self._turns:
            terminals.move(self._screen(session_id))

    def _replay(self) -> Callable[[LoggedEvent], Iterable[Update]]:
        return Updates(MessageIds(), live=False).replay

    def _prompt(self, raw: Raw) -> Awaitable[object]:
        params = decode_params(raw, PromptParams)
        return _acknowledged(self._foreground(params.session_id).prompt(decode_prompt(params)))

    def _foreground(self, session_id: str) -> Foreground:
        """The turns of an open session. Raises `UnknownSessionError`."""
        foreground = self._open.get(session_id)
        if foreground is None:
            raise UnknownSessionError(session_id)
        return foreground

    async def _joined(self, session_id: str, prompt: Prompt) -> bool:
        return await self._foreground(session_id).join(prompt) is not None

    async def _start(self, session_id: str, prompt: Prompt) -> None:
        await self._foreground(session_id).prompt(prompt)

    def _cancel(self, session_id: str) -> None:
        foreground = self._open.get(session_id)
        if foreground is not None:
            foreground.cancel()

    async def _cancel_terminal(self, raw: Raw) -> object:
        """`terminal/cancel`: the program ends and its output stays."""
        params = decode_params(raw, TerminalParams)
        if params.session_id not in self._open:
            raise UnknownSessionError(params.session_id)
        terminals = self._terminals.get(params.session_id)
        if terminals is None or not terminals.runs(params.terminal_id):
            raise RpcError(INVALID_PARAMS, "No terminal of that id is running in this session.")
        await terminals.kill(params.terminal_id)
        return {}

    async def _close(self, raw: Raw) -> object:
        """`session/close`; in v2 a session that is not open counts as closed."""
        await self._closed(decode_params(raw, SessionParams).session_id)
        return {}

    async def _delete(self, raw: Raw) -> object:
        await self._closed(decode_params(raw, SessionParams).session_id)
        return await super()._delete(raw)

    async def _closed(self, session_id: str) -> None:
        foreground, close = self._open.pop(session_id, None), partial(self._agent.close_session, session_id)
        with suppress(UnknownSessionError):
            await (close() if foreground is None else foreground.close(close))

    async def stop(self) -> None:
        """End all turns, which are no requests in v2, and wait up to `END_LIMIT_S` until the client was told."""
        for foreground in self._open.values():
            foreground.cancel()
        with anyio.move_on_after(END_LIMIT_S):
            for foreground in tuple(self._open.values()):
                await foreground.rest()

    def _opened(self, opened: OpenedSession) -> Update:
        """The common answer of the methods that open a session; without an await, as in v1."""
        self._open[opened.id] = self._opening.pop(opened.id)
        self._agent.greet(opened.id)
        self._agent.explore_models(opened.id)
        return {"configOptions": encode_options(opened.options), **discovered(opened.discovery)}

    def _peer(self, session_id: str, spec: SessionSpec) -> Peer:
        """The client's side of one session as in v1, with the session's state followed and its terminals shown."""
        peer, connection, screen = super()._peer(session_id, spec), self._connection, self._screen(session_id)
        begin_turn, cancel = partial(self._agent.begin_turn, session_id), partial(self._agent.cancel, session_id)
        joins, steer = partial(self._agent.joins, session_id), partial(self._agent.steer, session_id)
        foreground = self._opening[session_id] = Foreground(begin_turn, cancel, screen.tell, self._turns, joins, steer)

        def shown(terminals: Terminals) -> Terminals:
            around = ShownTerminals(terminals, screen, uuid.uuid4().hex[:8])
            self._terminals[session_id] = around
            return around

        activity, options = foreground.activity, partial(self._agent.options, session_id)
        return evolve(
            peer,
            broker=DraftPermissionBroker(connection, activity),
            events=DraftEventSink(
                connection, session_id, peer.capabilities, options, activity, Updates(foreground.ids)
            ),
            elicitor=None if peer.elicitor is None else DraftElicitor(peer.elicitor, activity),
            shown=shown,
            adopt=foreground.adopt,
        )

    def _screen(self, session_id: str) -> Screen:
        connection = self._connection

        def tell(update: Update) -> None:
            connection.post("session/update", {"sessionId": session_id, "update": update})

        async def say(update: Update) -> None:
            await connection.notify("session/update", {"sessionId": session_id, "update": update})

        return Screen(tell, say, self._turns)


async def _acknowledged(place: Awaitable[str]) -> object:
    return {"messageId": await place}


TRANSPORTS = ("stdio", "http", "acp")
"""The transports of MCP servers that are offered in v2."""


class Tagged(Params):
    """A union on the wire, of which only the kind is read."""

    type: str


class ResumeParams(KeptSessionParams, kw_only=True):
    """`session/resume`."""

    replay_from: Tagged | None = None


class SetConfigOptionParams(SessionParams):
    """`session/set_config_option`."""

    config_id: str
    type: str
    value: Raw


class ToolCallParams(SessionParams):
    """`tool_call/cancel`."""

    tool_call_id: str


class TerminalParams(SessionParams):
    """`terminal/cancel`."""

    terminal_id: str


def check_transports(servers: Sequence[Raw] | None) -> None:
    """Refuse servers with a transport that was not offered, as v2 demands. Raises `RpcError`."""
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
