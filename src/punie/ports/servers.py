"""MCP servers: one server of tools, the way to it, and what is remembered of it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from typing import Protocol, TypeAlias, runtime_checkable

from attrs import define

from punie.domain.servers.server import KeptListing, ServerApproval, ServerConfig, ServerListing
from punie.domain.tools.tool import ToolResult
from punie.domain.values.json_value import JsonObject
from punie.ports.tools import CallProgress


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


Params: TypeAlias = Mapping[str, object]
"""Plain JSON values, as they were decoded; they are not changed."""


Hearing: TypeAlias = Callable[[str, Params], None]
"""Hears one notification of MCP, by its method and parameters; returns at once."""


@runtime_checkable
class ServerChannel(Protocol):
    """Carries requests of MCP to servers of the client, and what comes of them back; lives as long as the client."""

    @abstractmethod
    async def request(self, server_id: str, method: str, params: Params, heard: Hearing) -> object:
        """Ask the server of that id; gives the result that MCP promises for the method, unchecked, or any other JSON.

        `params` are the inner ones, with everything that MCP wants in their `_meta`. `heard` is told what the server
        says of this request while it runs. The deadline is the caller's; cancelled, it takes the request back.

        Raises `ServerAnswerError` where the server answers with an error of MCP, `ChannelError` where it gave no
        answer that can be used.
        """
        ...


@define(eq=False)
class ServerAnswerError(Exception):
    """The server's own error: a code of MCP, and its words."""

    code: int
    message: str

    def __str__(self) -> str:
        return f"{self.message} ({self.code})"


@define(eq=False)
class ChannelError(Exception):
    """The request came to nothing on its way; the words follow "the server ...". `lost`: the client is gone."""

    words: str
    lost: bool = False

    def __str__(self) -> str:
        return self.words


@runtime_checkable
class ServerListings(Protocol):
    """Keeps one listing a server and directory; lives as long as the process, shared by its sessions and by others.

    It never raises: where nothing can be read there is none, and the log says so once.
    """

    @abstractmethod
    async def last(self, directory: str) -> Mapping[str, KeptListing]:
        """The listings kept for that directory, by the server's name; one that cannot be read is not there."""
        ...

    @abstractmethod
    async def keep(self, listing: KeptListing) -> bool:
        """Keep it in place of an earlier one; False where it could not be kept."""
        ...


@runtime_checkable
class ServerApprovals(Protocol):
    """Keeps approvals; lives as long as the process, is shared by its sessions and by other processes.

    It never raises: where nothing can be read, nothing is approved, and the log says so once.
    """

    @abstractmethod
    async def approved(self, directory: str) -> Mapping[str, str]:
        """The fingerprints approved in exactly that directory, by the server's name."""
        ...

    @abstractmethod
    async def approve(self, approval: ServerApproval) -> bool:
        """Keep it in place of an earlier one, for good when this returns; False where it could not be kept."""
        ...

    @abstractmethod
    async def revoke(self, directory: str, name: str) -> bool:
        """Take the approval of that server in exactly that directory back, for good when this returns.

        Where there was none nothing changes; False where it could not be taken back.
        """
        ...
