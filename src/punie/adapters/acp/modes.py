"""A session's mode on the wire as one of ACP's session modes (INTERFACES.md section 5).

It is a config option as well (config_options.py), which clients that know those prefer; both always say the same.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Raw

from punie.adapters.acp.handshake import Params, decode_params
from punie.domain.permission.modes import Mode
from punie.mechanics.jsonrpc.errors import INVALID_PARAMS, RpcError
from punie.ports.agent import Agent

MODE_WORDS: Mapping[Mode, tuple[str, str]] = {
    Mode.READ_ONLY: ("Read-only", "Look and plan; change nothing and run nothing that is not known to only look"),
    Mode.ASK: ("Ask", "Ask before every change and every command that is not known to only look"),
    Mode.ACCEPT_EDITS: ("Accept edits", "Change files of the project unasked; ask before commands"),
    Mode.AUTO: ("Auto", "Act unasked; ask before what is dangerous or not understood"),
}


class SetModeParams(Params):
    """The parameters of `session/set_mode`."""

    session_id: str
    mode_id: str


def mode_state(mode: Mode) -> dict[str, object]:
    """ACP's `SessionModeState`."""
    listed = [{"id": one.value, "name": name, "description": text} for one, (name, text) in MODE_WORDS.items()]
    return {"currentModeId": mode.value, "availableModes": listed}


def mode_update(mode: Mode) -> dict[str, object]:
    """The update that tells a client of another mode."""
    return {"sessionUpdate": "current_mode_update", "currentModeId": mode.value}


async def set_mode(agent: Agent, raw: Raw) -> object:
    """`session/set_mode`."""
    params = decode_params(raw, SetModeParams)
    await agent.set_mode(params.session_id, mode_of(params.mode_id))
    return {}


def mode_of(value: str | bool) -> Mode:
    """The mode of that name. Raises `RpcError`."""
    try:
        return Mode(value)
    except ValueError:
        known = ", ".join(mode.value for mode in Mode)
        raise RpcError(INVALID_PARAMS, f"Unknown mode; this agent has {known}.") from None
