"""As acp_sessions.py, for a client that ACP v2 (draft) was agreed on with."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping

import anyio

from punie.adapters.acp.sessions import SessionMethods
from punie.adapters.acp.v2.sessions import DraftSessionMethods
from punie.commands.acp.sessions import own_agent
from punie.mechanics.jsonrpc.connection import Connection


async def serve_draft_sessions(
    connection: Connection,
    environ: Mapping[str, str],
    flags: Mapping[str, str | None],
    log: logging.Logger,
    offer: Callable[[SessionMethods], Awaitable[None]],
) -> None:
    """Own the connection's sessions and their turns for as long as `offer` lasts; leaving ends them all."""
    async with own_agent(environ, flags, log) as agent, anyio.create_task_group() as turns:
        await offer(DraftSessionMethods(agent, connection, log, turns))
        turns.cancel_scope.cancel()
