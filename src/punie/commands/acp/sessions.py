"""The part of `punie acp` that serves sessions; imported after the `initialize` answer."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import anyio

from punie.adapters.acp.sessions import SessionMethods
from punie.application.agent import PunieAgent
from punie.bootstrap.lifespan import Process
from punie.mechanics.jsonrpc.connection import Connection

if TYPE_CHECKING:
    from punie.adapters.acp.v2.sessions import DraftSessionMethods


async def serve_sessions(
    connection: Connection,
    environ: Mapping[str, str],
    flags: Mapping[str, str | None],
    log: logging.Logger,
    offer: Callable[[SessionMethods], Awaitable[None]],
    draft: type[DraftSessionMethods] | None = None,
) -> None:
    """Own the connection's sessions until `offer` returns, and close them then.

    `draft` makes the methods of ACP v2 (draft), where the client agreed on it; its turns end with `offer` as well.
    """
    async with own_agent(environ, flags, log) as agent:
        if draft is None:
            await offer(SessionMethods(agent, connection, log))
            return
        async with anyio.create_task_group() as turns:
            await offer(draft(agent, connection, log, turns))
            turns.cancel_scope.cancel()


@asynccontextmanager
async def own_agent(
    environ: Mapping[str, str], flags: Mapping[str, str | None], log: logging.Logger
) -> AsyncGenerator[PunieAgent]:
    """The agent of one process, with the process's lifetime around it; its sessions are closed at the end."""
    process = Process(environ, flags, log)
    process.warm_up.start()
    try:
        async with PunieAgent(process.session_scope, log, process.stored) as agent:
            yield agent
    finally:
        await process.aclose()
