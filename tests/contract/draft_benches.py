"""The client side of a connection that speaks ACP v2, on the benches of v1's."""

from __future__ import annotations

from punie.adapters.acp.v2.activity import Activity, Update
from punie.adapters.acp.v2.client import DraftEventSink, DraftPermissionBroker
from punie.adapters.acp.v2.foreground import MessageIds
from punie.adapters.acp.v2.updates import Updates
from punie.domain.session.session import SessionOptions
from punie.domain.tools.catalog import ClientCapabilities
from punie.mechanics.jsonrpc.connection import Connection
from tests.contract.acp_benches import SESSION, AcpBrokerBench, AcpSinkBench


def unheard(_update: Update) -> None:
    """No state is looked at here."""


class DraftBrokerBench(AcpBrokerBench):
    def connect(self, near: Connection, _far: Connection) -> None:
        self.broker = DraftPermissionBroker(near, Activity(unheard))


class DraftSinkBench(AcpSinkBench):
    def connect(self, near: Connection, far: Connection) -> None:
        super().connect(near, far)
        self.sink = DraftEventSink(
            near, SESSION, ClientCapabilities(), SessionOptions, Activity(unheard), Updates(MessageIds())
        )
