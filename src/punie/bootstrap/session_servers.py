"""What a session has of its MCP servers; most sessions have none, and load nothing for them."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from attrs import frozen

from punie.adapters.local.clock import LocalClock
from punie.adapters.schema.argument_validator import JsonSchemaRsValidator
from punie.application.sessions.notices import SessionNotices
from punie.domain.servers.server import ServerConfig
from punie.domain.session.session import SessionSpec
from punie.ports.people import Peer
from punie.ports.servers import ServerApprovals, ServerListings

if TYPE_CHECKING:
    from punie.adapters.mcp.servers import McpServers
    from punie.application.servers.registry import ServerRegistry
    from punie.application.servers.session_servers import SessionServers


@frozen
class ServerState:
    """What is kept of MCP servers beyond a session: what they listed last, and which of a project's may run."""

    listings: ServerListings
    approvals: ServerApprovals


def connections_of(
    configs: tuple[ServerConfig, ...], clock: LocalClock, validator: JsonSchemaRsValidator, peer: Peer
) -> McpServers | None:
    """What connects to them; None where there are none, and nothing is loaded then."""
    if not configs:
        return None
    from punie.adapters.mcp.servers import McpServers  # most sessions have no servers

    return McpServers(clock, validator, peer.elicitor, peer.server_channel)


def server_registry_of(
    spec: SessionSpec,
    configs: tuple[ServerConfig, ...],
    connections: McpServers | None,
    state: ServerState,
    clock: LocalClock,
    notices: SessionNotices,
    log: logging.Logger,
) -> ServerRegistry | None:
    """What knows how each stands and what it offers; entered and left with the session."""
    if connections is None:
        return None
    from punie.adapters.local.ttl_cache import TTLCache
    from punie.application.servers.known_server import Surroundings as AroundServers
    from punie.application.servers.registry import ServerRegistry

    around = AroundServers(
        directory=spec.cwd,
        servers=connections,
        listings=state.listings,
        cache=TTLCache(clock=clock),
        clock=clock,
        log=log,
        warn=notices.warn,
    )
    return ServerRegistry(configs, around, state.approvals)


def session_servers_of(
    session_id: str, registry: ServerRegistry | None, validator: JsonSchemaRsValidator, log: logging.Logger
) -> SessionServers | None:
    """Their tools as the session offers them."""
    if registry is None:
        return None
    from punie.application.servers.session_servers import SessionServers

    return SessionServers(session_id, registry, validator, log)
