"""One server of tools, whoever runs it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Protocol, runtime_checkable

from punie.domain.json_value import JsonObject
from punie.domain.servers import ServerConfig, ServerListing
from punie.domain.tool import ToolResult
from punie.ports.tool_executor import CallProgress


@runtime_checkable
class ToolServer(Protocol):
    """A server, connected when it is first needed and supervised from then on; lives as long as its session.

    Whatever the server does (crash, hang, flood, lie), a method here ends within its bound, and no other server
    notices.
    """

    @property
    @abstractmethod
    def config(self) -> ServerConfig:
        """How it is configured."""
        ...

    @property
    @abstractmethod
    def connected(self) -> bool:
        """Whether a connection stands at this moment, so that asking it starts nothing."""
        ...

    @abstractmethod
    async def list_tools(self) -> ServerListing:
        """Ask the server anew for all of its tools, connecting first where needed. Raises `ServerUnavailableError`."""
        ...

    @abstractmethod
    async def call(self, name: str, arguments: JsonObject, progress: CallProgress) -> ToolResult:
        """Call the tool of that name, the server's own, at most once.

        Raises `ServerUnavailableError` before the call was sent; afterwards what goes wrong is a failed result.
        """
        ...

    @abstractmethod
    def on_change(self, hear: Callable[[], None]) -> None:
        """Call `hear` whenever the server says, or it must be supposed, that its tools changed."""
        ...


@runtime_checkable
class ToolServers(Protocol):
    """Opens servers; lives as long as its session and ends all of them with it."""

    @abstractmethod
    def open(self, config: ServerConfig, *, legacy: bool = False) -> ToolServer:
        """The server of that configuration; nothing starts yet. The same object for the same name.

        `legacy` is what its last listing said of it; where that no longer holds it is found out.
        """
        ...


class ServerUnavailableError(Exception):
    """The server cannot be reached, or does not answer in time; the sentence says why and what to do."""
