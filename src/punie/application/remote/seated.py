"""What a session's client lends it, through the seat where that client sits."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from attrs import evolve, frozen

from punie.application.remote.seat import ClientAwayError, ClientSeat
from punie.domain.errors import ToolFailedError
from punie.domain.permission.flow import Dismissed, PermissionOutcome, PermissionQuestion
from punie.domain.session.elicitation import CANCELLED, Elicitation, ElicitationAnswer
from punie.domain.tools.discovery import CatalogAnswer
from punie.domain.tools.tool import ToolCall, ToolResult
from punie.domain.values.terminal import Command, ExitStatus, TerminalOutput
from punie.ports.people import Elicitor, Peer
from punie.ports.permission import PermissionBroker
from punie.ports.servers import ChannelError, Hearing, Params, ServerChannel
from punie.ports.tools import CallProgress, ToolExecutor, ToolProvider, ToolSourceError
from punie.ports.workspace import Terminals, Workspace

T = TypeVar("T")

NOBODY = "no client came back in time to answer it"


@frozen
class SeatedBroker(PermissionBroker):
    """A question outlives the connection it was put over; where nobody comes back it is dismissed."""

    seat: ClientSeat

    async def ask(self, question: PermissionQuestion) -> PermissionOutcome:
        return await self.seat.ask(lambda peer: peer.broker.ask(question)) or Dismissed(NOBODY)


@frozen
class SeatedElicitor(Elicitor):
    """As the questions of permission; nobody is a cancellation."""

    seat: ClientSeat

    async def ask(self, elicitation: Elicitation) -> ElicitationAnswer:
        return await self.seat.ask(lambda peer: _lent(peer.elicitor).ask(elicitation)) or CANCELLED


@frozen
class SeatedWorkspace(Workspace):
    """The client's files."""

    seat: ClientSeat

    async def read_text(self, path: str, *, line_1based: int | None = None, limit_lines: int | None = None) -> str:
        async def read(peer: Peer) -> str:
            return await _lent(peer.workspace).read_text(path, line_1based=line_1based, limit_lines=limit_lines)

        return await _tool(self.seat, read)

    async def write_text(self, path: str, content: str) -> None:
        async def write(peer: Peer) -> None:
            await _lent(peer.workspace).write_text(path, content)

        await _tool(self.seat, write)


@frozen
class SeatedTerminals(Terminals):
    """The client's terminals. One that the client before started is unknown to another client, which says so."""

    seat: ClientSeat
    shown: bool

    @property
    def shown_by_client(self) -> bool:
        return self.shown

    async def create(self, command: Command) -> str:
        return await _tool(self.seat, lambda peer: _lent(peer.terminals).create(command))

    async def output(self, terminal_id: str) -> TerminalOutput:
        return await _tool(self.seat, lambda peer: _lent(peer.terminals).output(terminal_id))

    async def wait(self, terminal_id: str) -> ExitStatus:
        return await _tool(self.seat, lambda peer: _lent(peer.terminals).wait(terminal_id))

    async def kill(self, terminal_id: str) -> None:
        # Clean-up holds up the end of a turn, and a client that went away took its terminals along.
        await _tool(self.seat, lambda peer: _lent(peer.terminals).kill(terminal_id), waits=False)

    async def release(self, terminal_id: str) -> None:
        await _tool(self.seat, lambda peer: _lent(peer.terminals).release(terminal_id), waits=False)


@frozen
class SeatedCatalog(ToolProvider):
    """The client's own tools."""

    seat: ClientSeat

    async def discover_tools(self) -> CatalogAnswer:
        try:
            return await self.seat.call(lambda peer: _lent(peer.catalog).discover_tools())
        except ClientAwayError as error:
            raise ToolSourceError(str(error)) from error


@frozen
class SeatedBridge(ToolExecutor):
    """Calls of the client's own tools."""

    seat: ClientSeat

    async def execute(self, call: ToolCall, progress: CallProgress) -> ToolResult:
        return await _tool(self.seat, lambda peer: _lent(peer.bridge).execute(call, progress))


@frozen
class SeatedChannel(ServerChannel):
    """The client's own MCP servers."""

    seat: ClientSeat

    async def request(self, server_id: str, method: str, params: Params, heard: Hearing) -> object:
        try:
            return await self.seat.call(
                lambda peer: _lent(peer.server_channel).request(server_id, method, params, heard)
            )
        except ClientAwayError as error:
            raise ChannelError("is gone with the client, which lost its connection", lost=True) from error


def seated(seat: ClientSeat, peer: Peer) -> Peer:
    """The client's side of a session as the session keeps it, whoever sits there; exactly what `peer` has (A-02).

    Events do not go this way: nobody waits for a client that is not there to be told, and what it missed is in the log.
    """
    return evolve(
        peer,
        broker=SeatedBroker(seat),
        elicitor=None if peer.elicitor is None else SeatedElicitor(seat),
        workspace=None if peer.workspace is None else SeatedWorkspace(seat),
        terminals=None if peer.terminals is None else SeatedTerminals(seat, peer.terminals.shown_by_client),
        catalog=None if peer.catalog is None else SeatedCatalog(seat),
        bridge=None if peer.bridge is None else SeatedBridge(seat),
        server_channel=None if peer.server_channel is None else SeatedChannel(seat),
    )


async def _tool(seat: ClientSeat, work: Callable[[Peer], Awaitable[T]], *, waits: bool = True) -> T:
    try:
        return await seat.call(work, waits=waits)
    except ClientAwayError as error:
        raise ToolFailedError(str(error)) from error


def _lent(port: T | None) -> T:
    """What the client that sits there lends: no less than the one that opened the session (`Room.suits`)."""
    if port is None:
        raise ToolFailedError("The client that is connected now does not offer this.")
    return port
