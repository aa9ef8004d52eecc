"""The changes of a session, for its client: listed, accepted and rejected (docs/changes.md)."""

from __future__ import annotations

from msgspec import Raw

from punie.adapters.acp.handshake import Params, decode_params
from punie.domain.errors import ToldToModel
from punie.mechanics.jsonrpc.errors import INVALID_PARAMS, RpcError
from punie.ports.agent import Agent


class RejectedChange(Params):
    """The file to take back, or the hunks of it, which count from 1; all where there are none."""

    path: str
    hunks: tuple[int, ...] = ()


class ChangesParams(Params):
    """`_punie.dev/changes`; `accept` are paths, and an empty list accepts everything."""

    session_id: str
    turn: int | None = None
    all: bool = False
    accept: list[str] | None = None
    reject: RejectedChange | None = None


async def changes(agent: Agent, raw: Raw) -> object:
    """`_punie.dev/changes`: accepts, then rejects what the request names, and lists what is left."""
    params, done = decode_params(raw, ChangesParams), dict[str, object]()
    try:
        if params.accept is not None:
            done["accepted"] = list(await agent.accept_changes(params.session_id, params.accept))
        if params.reject is not None:
            await agent.reject_changes(params.session_id, params.reject.path, params.reject.hunks)
            done["rejected"] = [params.reject.path]
        found = await agent.changes(params.session_id, params.turn, everything=params.all)
    except ToldToModel as error:
        raise RpcError(INVALID_PARAMS, str(error)) from error
    listed = [
        {
            "turn": row.turn, "path": row.path, "change": row.change, "by": row.by, "tool": row.tool,
            "added": row.added, "removed": row.removed,
        }
        for row in found
    ]  # fmt: skip
    return {"changes": listed, **done}
