"""Records of calls and turns that have ended."""

from __future__ import annotations

from attrs import field, frozen

from punie.domain.model.usage import Usage
from punie.domain.tools.tool import ToolOutcome

NAME_LIMIT = 128
"""How much of a name is kept: a model may call a tool by any text."""


def _name(value: str) -> str:
    """The name, cut, with what is no character replaced."""
    return value[:NAME_LIMIT].encode("utf-8", "replace").decode("utf-8")


@frozen
class CallRecord:
    """One finished call. Times are milliseconds, `started_at` seconds since the epoch in UTC.

    `correlation_id` is the id under which the client sees the call. `waited_ms` is how long a person thought about it
    and is no part of `elapsed_ms`. `bytes_in` are the arguments as JSON, `bytes_out` the text that the model got.
    """

    session_id: str
    turn_id: str
    correlation_id: str
    tool: str = field(converter=_name)
    source: str
    outcome: ToolOutcome
    code: str | None
    started_at: float
    elapsed_ms: float
    waited_ms: float
    bytes_in: int
    bytes_out: int


@frozen
class TurnRecord:
    """One finished turn: `stop_reason` is ACP's, or `failed` where the engine could not answer."""

    session_id: str
    turn_id: str
    model: str = field(converter=_name)
    stop_reason: str
    started_at: float
    elapsed_ms: float
    usage: Usage = Usage()
