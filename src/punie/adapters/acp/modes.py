"""A session's mode on the wire: ACP's session modes, and the same as a config option (INTERFACES.md section 5).

Clients that know config options prefer them to modes; both always say the same.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Raw

from punie.adapters.acp.handshake import Params, decode_params
from punie.adapters.acp.rpc_errors import INVALID_PARAMS, RpcError
from punie.domain.modes import Mode
from punie.ports.agent import Agent

MODE_OPTION = "mode"

_WORDS: Mapping[Mode, tuple[str, str]] = {
    Mode.READ_ONLY: ("Read-only", "Look and plan; change nothing and run nothing that is not known to only look"),
    Mode.ASK: ("Ask", "Ask before every change and every command that is not known to only look"),
    Mode.ACCEPT_EDITS: ("Accept edits", "Change files of the project unasked; ask before commands"),
    Mode.AUTO: ("Auto", "Act unasked; ask before what is dangerous or not understood"),
}


class SetModeParams(Params):
    """The parameters of `session/set_mode`."""

    session_id: str
    mode_id: str


class SetConfigOptionParams(Params):
    """The parameters of `session/set_config_option`; all of our options take a text."""

    session_id: str
    config_id: str
    value: str | bool


def mode_state(mode: Mode) -> dict[str, object]:
    """ACP's `SessionModeState`."""
    listed = [{"id": one.value, "name": name, "description": text} for one, (name, text) in _WORDS.items()]
    return {"currentModeId": mode.value, "availableModes": listed}


def config_options(mode: Mode) -> list[dict[str, object]]:
    """Every config option of a session with what it is set to."""
    values = [{"value": one.value, "name": name, "description": text} for one, (name, text) in _WORDS.items()]
    return [
        {
            "id": MODE_OPTION,
            "name": "Mode",
            "description": "How much the agent may do without asking",
            "category": "mode",
            "type": "select",
            "currentValue": mode.value,
            "options": values,
        }
    ]


def mode_update(mode: Mode) -> dict[str, object]:
    """The update that tells a client of another mode."""
    return {"sessionUpdate": "current_mode_update", "currentModeId": mode.value}


def config_update(mode: Mode) -> dict[str, object]:
    """The same for a client that goes by config options."""
    return {"sessionUpdate": "config_option_update", "configOptions": config_options(mode)}


async def set_mode(agent: Agent, raw: Raw) -> object:
    """`session/set_mode`."""
    params = decode_params(raw, SetModeParams)
    await agent.set_mode(params.session_id, _mode(params.mode_id))
    return {}


async def set_config_option(agent: Agent, raw: Raw) -> object:
    """`session/set_config_option`: answers with every option, as ACP wants it."""
    params = decode_params(raw, SetConfigOptionParams)
    if params.config_id != MODE_OPTION:
        raise RpcError(INVALID_PARAMS, f"Unknown configId; this agent has {MODE_OPTION!r}.")
    mode = _mode(params.value)
    await agent.set_mode(params.session_id, mode)
    return {"configOptions": config_options(mode)}


def _mode(value: str | bool) -> Mode:
    try:
        return Mode(value)
    except ValueError:
        known = ", ".join(mode.value for mode in Mode)
        raise RpcError(INVALID_PARAMS, f"Unknown mode; this agent has {known}.") from None
