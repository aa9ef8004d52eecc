"""The half of `punie acp` that only sessions need; imported behind the `initialize` answer."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager

from punie.adapters.acp.sessions import SessionMethods
from punie.application.agent import PunieAgent
from punie.bootstrap.lifespan import Process
from punie.mechanics.jsonrpc.connection import Connection


async def serve_sessions(
    connection: Connection,
    environ: Mapping[str, str],
    flags: Mapping[str, str | None],
    log: logging.Logger,
    offer: Callable[[SessionMethods], Awaitable[None]],
) -> None:
    """Own the connection's sessions for as long as `offer` lasts; leaving closes them all."""
    async with own_agent(environ, flags, log) as agent:
        await offer(SessionMethods(agent, connection, log))


@asynccontextmanager
async def own_agent(
    environ: Mapping[str, str], flags: Mapping[str, str | None], log: logging.Logger
) -> AsyncGenerator[PunieAgent]:
    """The sessions of one connection, with a process's lifetime around them."""
    process = Process(environ, flags, log)
    process.warm_up.start()
    async with PunieAgent(process.session_scope, log, process.stored) as agent:
        yield agent
    await process.aclose()
