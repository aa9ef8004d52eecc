"""The clients of `punie serve`: a connection each, and one agent for all."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager

import anyio
import anyio.lowlevel
from attrs import define, field

from punie.adapters.acp.agent import AcpAgent
from punie.adapters.acp.jsonrpc import Connection
from punie.adapters.acp.sessions import SessionMethods
from punie.adapters.websocket.wire import WebSocketWire
from punie.application.agent import PunieAgent
from punie.application.remote.connected_agent import ConnectedAgent
from punie.application.remote.reception import Reception
from punie.bootstrap.lifespan import Process

INITIALIZE_LIMIT_S = 30.0
"""How long a client that was let in may take to say `initialize`."""


@define(eq=False)
class ServedClients:
    """Those that are connected now; lives as long as the server."""

    reception: Reception
    log: logging.Logger
    initialize_limit_s: float = INITIALIZE_LIMIT_S
    _connections: set[Connection] = field(factory=set[Connection], init=False)
    _stopped: bool = field(default=False, init=False)

    async def serve(self, wire: WebSocketWire) -> None:
        """One client, from its first message to its last; its sessions go on without it."""
        connection, agent = Connection(wire, log=self.log.getChild("wire")), ConnectedAgent(self.reception, self.log)
        wire.lost = agent.leave
        self._connections.add(connection)
        if self._stopped:
            connection.stop()
        try:
            await self._serve(wire, connection, agent)
        finally:
            self._connections.discard(connection)
            agent.leave()

    def stop(self) -> None:
        """End every connection in order: what runs is cancelled and answered. Returns at once."""
        self._stopped = True
        for connection in self._connections:
            connection.stop()

    async def _serve(self, wire: WebSocketWire, connection: Connection, agent: ConnectedAgent) -> None:
        methods = SessionMethods(agent, connection, self.log)

        async def given() -> SessionMethods:
            await anyio.lowlevel.checkpoint()
            return methods

        router = AcpAgent(given, self.log)
        async with anyio.create_task_group() as beside:
            beside.start_soon(wire.watch)
            beside.start_soon(self._expect_initialize, router, connection)
            await connection.run(router)
            beside.cancel_scope.cancel()

    async def _expect_initialize(self, router: AcpAgent, connection: Connection) -> None:
        with anyio.move_on_after(self.initialize_limit_s):
            await router.initialized.wait()
            return
        self.log.warning("a client said no initialize; its connection is closed")
        connection.stop()


@asynccontextmanager
async def served_clients(
    environ: Mapping[str, str], flags: Mapping[str, str | None], log: logging.Logger, grace_s: float
) -> AsyncGenerator[ServedClients]:
    """Everything behind the door; leaving it ends turns and sessions."""
    process = Process(environ, flags, log)
    process.warm_up.start()
    try:
        async with (
            PunieAgent(process.session_scope, log, process.stored) as agent,
            Reception(agent, log, grace_s) as reception,
        ):
            yield ServedClients(reception, log)
    finally:
        await process.aclose()
