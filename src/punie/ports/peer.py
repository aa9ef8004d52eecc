"""What belongs to the other side of a session: its ears, its yes or no, and what of its machine it lends."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from attrs import frozen

from punie.domain.discovery import ClientCapabilities
from punie.domain.turn import TurnReport
from punie.domain.turn_progress import TurnSoFar
from punie.ports.elicitor import Elicitor
from punie.ports.event_sink import EventSink
from punie.ports.permission_broker import PermissionBroker
from punie.ports.server_channel import ServerChannel
from punie.ports.terminals import Terminals
from punie.ports.tool_executor import ToolExecutor
from punie.ports.tool_provider import ToolProvider
from punie.ports.workspace import Workspace


@frozen
class Peer:
    """The client as one session sees it; arrives with the session and is never shared between two (M-13).

    `workspace` and `terminals` are None where the client did not advertise them; `catalog` and `bridge` are None where
    it did not advertise discovery, and `elicitor` where its person cannot fill in forms. `server_channel`
    leads to the MCP servers that the client itself runs, of which it tells with the session. `shown` puts the client's
    eyes before terminals of this machine, where it can show those. `adopt` is told of the
    turn in the middle of which the session is taken up: how far it is, and what waits for its end (it raises what
    `RunningTurn.run` raises, and gives back when everything before the end was told).
    """

    capabilities: ClientCapabilities
    broker: PermissionBroker
    events: EventSink
    workspace: Workspace | None = None
    terminals: Terminals | None = None
    catalog: ToolProvider | None = None
    bridge: ToolExecutor | None = None
    elicitor: Elicitor | None = None
    server_channel: ServerChannel | None = None
    shown: Callable[[Terminals], Terminals] | None = None
    adopt: Callable[[TurnSoFar, Callable[[], Awaitable[TurnReport]]], None] | None = None
