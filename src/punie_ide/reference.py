"""The reference IDE: one agent and any number of sessions (ACP, initialization and session setup)."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import anyio
import anyio.abc
from attrs import define, field
from msgspec import Raw

from punie.api import Terminals, Workspace, __version__
from punie.mechanics.jsonrpc.connection import Connection, Transport
from punie.mechanics.jsonrpc.errors import ConnectionClosed
from punie_ide.observed import ObservedTerminals, ObservedWorkspace
from punie_ide.permission import Decide, reject
from punie_ide.process import AgentGone, launch_agent
from punie_ide.router import CHANGED, IdeRouter
from punie_ide.session import IdeSession, Observe
from punie_ide.task_group import flat_task_group
from punie_ide.tools import IdeTool, ToolShelf
from punie_ide.wire import InitializeResult, decode, decode_session

PROTOCOL_VERSION = 1
LOG = logging.getLogger("punie.reference_ide")


@define(eq=False)
class ReferenceIde:
    """An ACP client with the files, terminals, person and tools that it is given.

    `connect_ide` and `start_ide` make one with an open, initialized connection, with which it ends. `sessions` are all
    opened sessions by their id.
    """

    connection: Connection
    tasks: anyio.abc.TaskGroup
    workspace: Workspace | None = None
    terminals: Terminals | None = None
    shelf: ToolShelf | None = None
    decide: Decide = reject
    observe: Observe | None = None
    describe_end: Callable[[], Awaitable[AgentGone]] | None = None
    sessions: dict[str, IdeSession] = field(factory=dict, init=False)
    agent: InitializeResult | None = field(default=None, init=False)
    _opening: int = field(default=0, init=False)

    @property
    def capabilities(self) -> dict[str, Any]:
        """The capabilities for `initialize`: those of the given files, terminals and tools."""
        files = self.workspace is not None
        advertised: dict[str, Any] = {
            "fs": {"readTextFile": files, "writeTextFile": files},
            "terminal": self.terminals is not None,
        }
        if self.shelf is not None:
            advertised["_meta"] = {"punie.dev": {"discoverTools": self.shelf.version}}
        return advertised

    async def initialize(self) -> InitializeResult:
        """Send `initialize`. Raises `AgentGone` where the agent speaks another version of ACP."""
        params = {
            "protocolVersion": PROTOCOL_VERSION,
            "clientCapabilities": self.capabilities,
            "clientInfo": {"name": "punie-reference-ide", "title": "Punie reference IDE", "version": __version__},
        }
        agent = decode(await self._ask("initialize", params), InitializeResult)
        if agent.protocol_version != PROTOCOL_VERSION:
            raise AgentGone(
                f"The agent speaks ACP version {agent.protocol_version}, this IDE version {PROTOCOL_VERSION}."
            )
        self.agent = agent
        return agent

    async def new_session(self, cwd: str, **more: Any) -> IdeSession:
        """Open a session in an absolute directory; `more` are further parameters of `session/new` as on the wire."""
        self._opening += 1
        try:
            answer = await self._ask("session/new", {"cwd": cwd, "mcpServers": [], **more})
        finally:
            self._opening -= 1
        session_id, discovery = decode_session(answer)
        session = self.sessions.get(session_id) or self._adopt(session_id)
        session.opened(cwd, discovery)
        return session

    async def set_tools(self, tools: Iterable[IdeTool]) -> None:
        """Offer these tools from now on, and notify the agent in every session.

        Raises `ValueError` where the IDE was opened without tools, so that none were advertised.
        """
        if self.shelf is None:
            raise ValueError("this IDE did not advertise tools when it shook hands; open it with tools=[...]")
        self.shelf.replace(tools)
        for session_id in tuple(self.sessions):
            await self.connection.notify(CHANGED, {"sessionId": session_id})

    def find_session(self, session_id: str) -> IdeSession | None:
        """The session of that id; a new one while `session/new` is pending, since discovery comes before its answer."""
        session = self.sessions.get(session_id)
        if session is None and self._opening:
            session = self._adopt(session_id)
        return session

    async def release(self) -> None:
        """End the programs that the sessions left running."""
        for session in self.sessions.values():
            await session.release()

    def _adopt(self, session_id: str) -> IdeSession:
        session = IdeSession(session_id, "", self._ask, self.connection.notify, self.decide, self.observe)
        if self.workspace is not None:
            session.workspace = ObservedWorkspace(self.workspace, session.record)
        if self.terminals is not None:
            session.terminals = ObservedTerminals(self.terminals, session.record, self.tasks)
            session.tools_terminals = ObservedTerminals(self.terminals, session.record, self.tasks, background=True)
        self.sessions[session_id] = session
        return session

    async def _ask(self, method: str, params: object) -> Raw:
        try:
            return await self.connection.request(method, params)
        except ConnectionClosed:
            if self.describe_end is None:
                raise AgentGone("The agent closed the connection.") from None
            raise await self.describe_end() from None


@asynccontextmanager
async def connect_ide(
    transport: Transport,
    *,
    workspace: Workspace | None = None,
    terminals: Terminals | None = None,
    tools: Sequence[IdeTool] | ToolShelf | None = None,
    extends: bool = False,
    decide: Decide = reject,
    observe: Observe | None = None,
    describe_end: Callable[[], Awaitable[AgentGone]] | None = None,
) -> AsyncGenerator[ReferenceIde]:
    """An IDE on that transport, initialized; with `tools` None it does not have the discovery extension.

    A `ToolShelf` in place of the list can declare version 1.1 of the extension.

    Raises `AgentGone` where the agent ends or speaks another version, `RpcError` where it refuses.
    """
    connection = Connection(transport, log=LOG)
    shelf = tools if tools is None or isinstance(tools, ToolShelf) else ToolShelf(tools, extends=extends)
    async with flat_task_group() as tasks:
        ide = ReferenceIde(connection, tasks, workspace, terminals, shelf, decide, observe, describe_end)
        files, programs = workspace is not None, terminals is not None
        tasks.start_soon(connection.run, IdeRouter(ide.find_session, LOG, shelf, files, programs))
        try:
            await ide.initialize()
            yield ide
        finally:
            await ide.release()
            connection.stop()
            tasks.cancel_scope.cancel()


@asynccontextmanager
async def start_ide(
    argv: Sequence[str], *, cwd: str | None = None, env: Mapping[str, str] | None = None, **options: Any
) -> AsyncGenerator[ReferenceIde]:
    """Start an agent and connect an IDE to it; `options` are those of `connect_ide`. The agent ends with the IDE."""
    async with (
        launch_agent(argv, cwd=cwd, env=env) as agent,
        connect_ide(agent.transport, describe_end=agent.end, **options) as ide,
    ):
        yield ide
