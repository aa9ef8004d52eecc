"""The changes of a session, for its client: listed, accepted, rejected, and taken back (docs/changes.md, undo.md)."""

from __future__ import annotations

from msgspec import Raw

from punie.adapters.acp.handshake import Params, decode_params
from punie.domain.errors import ToldToModel
from punie.mechanics.jsonrpc.errors import INVALID_PARAMS, RpcError
from punie.ports.agent import Agent
from punie.ports.history import Part


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


class RewindParams(Params):
    """`_punie.dev/rewind`; `turn` is left out for the last one, and `paths` are files to take back in any case."""

    session_id: str
    turn: int | None = None
    mode: Part = Part.BOTH
    paths: tuple[str, ...] = ()
    dry_run: bool = False


async def rewind(agent: Agent, raw: Raw) -> object:
    """`_punie.dev/rewind`: goes back to before a turn, or tells what that would do."""
    params = decode_params(raw, RewindParams)
    try:
        found = await agent.rewind(params.session_id, params.turn, params.mode, params.paths, do=not params.dry_run)
    except ToldToModel as error:
        raise RpcError(INVALID_PARAMS, str(error)) from error
    return found.as_object()


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
    return {"changes": [row.as_object() for row in found], **done}
