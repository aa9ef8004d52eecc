"""The servers of a session."""

from __future__ import annotations

from types import TracebackType
from typing import Self

import anyio
from anyio.abc import TaskGroup

from punie.adapters.mcp.server import McpServer
from punie.domain.servers.server import ServerConfig
from punie.ports.machine import Clock
from punie.ports.people import Elicitor
from punie.ports.servers import ServerChannel, ServerUnavailableError, ToolServers
from punie.ports.tools import ArgumentValidator

CLOSE_S = 6.0
"""What all connections together may take to end; then their tasks are cancelled, which kills what they hold."""


class McpServers(ToolServers):
    """Servers that speak MCP; an async context manager, lives as long as the session.

    Nothing is started, and `mcp` is not loaded, before a server is asked for its tools. On leaving the context every
    connection ends, and of the programs that were started none is left.
    """

    def __init__(
        self,
        clock: Clock,
        validator: ArgumentValidator | None = None,
        elicitor: Elicitor | None = None,
        channel: ServerChannel | None = None,
    ) -> None:
        """`validator` checks results against what a tool promises; without one there is no warning.

        `elicitor` asks a person what a server wants to know; without it, or a validator to check what comes back,
        servers hear that the person declined. `channel` is the way to the client's own servers.
        """
        self._clock = clock
        self._validator = validator
        self._elicitor = elicitor
        self._channel = channel
        self._servers: dict[str, McpServer] = {}
        self._group: TaskGroup | None = None

    async def __aenter__(self) -> Self:
        self._group = anyio.create_task_group()
        await self._group.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        group, self._group = self._group, None
        if group is None:
            return
        group.cancel_scope.deadline = anyio.current_time() + CLOSE_S
        for server in self._servers.values():
            server.stop()
        # The group is told of no error: it would wrap it into a group of its own.
        await group.__aexit__(None, None, None)

    def open(self, config: ServerConfig, *, legacy: bool = False) -> McpServer:
        """The server of that name; the configuration it was first opened with counts."""
        if config.name not in self._servers:
            self._servers[config.name] = McpServer(
                config, self._tasks, self._clock, self._validator, self._elicitor, self._channel, legacy=legacy
            )
        return self._servers[config.name]

    def _tasks(self) -> TaskGroup:
        if self._group is None:
            raise ServerUnavailableError("The session is closed, so no server can be reached. Open another session.")
        return self._group
