"""The servers that are configured for a directory of this machine, for commands and sessions."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import asynccontextmanager

from punie.adapters.local.clock import LocalClock
from punie.adapters.local.ttl_cache import TTLCache
from punie.adapters.mcp.servers import McpServers
from punie.adapters.schema.argument_validator import JsonSchemaRsValidator
from punie.adapters.storage.servers import SqliteServerApprovals, SqliteServerListings
from punie.adapters.storage.state_file import StateFile
from punie.application.servers.known_server import Surroundings
from punie.application.servers.registry import ServerRegistry
from punie.bootstrap.settings.state import database_file
from punie.domain.servers.server import ServerConfig


@asynccontextmanager
async def servers_here(
    environ: Mapping[str, str], directory: str, configs: Iterable[ServerConfig], log: logging.Logger
) -> AsyncGenerator[ServerRegistry]:
    """A registry of those servers for that absolute directory; what was started is gone when it is left."""
    clock = LocalClock()
    state = StateFile(database_file(environ), log)
    try:
        async with McpServers(clock, JsonSchemaRsValidator()) as servers:
            around = Surroundings(
                directory=directory,
                servers=servers,
                listings=SqliteServerListings(state),
                cache=TTLCache(clock=clock),
                clock=clock,
                log=log,
            )
            async with ServerRegistry(tuple(configs), around, SqliteServerApprovals(state)) as registry:
                yield registry
    finally:
        state.close()
