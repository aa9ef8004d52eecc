"""The life of one call: pending, in progress, and exactly one end (ACP: tool call status; A-11, M-04).

Beside it what can be told of calls: those that run, how those that ended went, and what one will take (S2-26 to S2-29).
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType

from attrs import define, field, frozen


class CallStatus(StrEnum):
    """ACP's four states; a cancelled call ends as `failed` on the wire."""

    PENDING = "pending"
    IN_PROGRESS = "in_progress"
    COMPLETED = "completed"
    FAILED = "failed"

    @property
    def terminal(self) -> bool:
        """Whether nothing may follow it."""
        return self in {CallStatus.COMPLETED, CallStatus.FAILED}


_NEXT = {
    CallStatus.PENDING: {CallStatus.IN_PROGRESS, CallStatus.FAILED},
    CallStatus.IN_PROGRESS: {CallStatus.COMPLETED, CallStatus.FAILED},
}


class LifeError(RuntimeError):
    """A bug of ours: a call was moved to a state that its life does not allow."""


@define
class CallLife:
    """The state of one call; lives as long as the call. `advance` is the only way on."""

    status: CallStatus = field(default=CallStatus.PENDING, init=False)

    def advance(self, status: CallStatus) -> None:
        """Move on; raises `LifeError` where the life does not allow it, so that no call ends twice."""
        if status not in _NEXT.get(self.status, set()):
            raise LifeError(f"a call cannot go from {self.status.value} to {status.value}")
        self.status = status


def cut(text: str, limit_bytes: int) -> str:
    """The text, or its head and tail under a first line that says how much of it is there.

    `limit_bytes` counts UTF-8, the lines that say so not counted; no character is torn.
    """
    if len(text) * 4 <= limit_bytes:
        return text
    data = text.encode("utf-8", "surrogatepass")
    if len(data) <= limit_bytes:
        return text
    head, tail = limit_bytes * 2 // 3, limit_bytes - limit_bytes * 2 // 3
    first = data[:head].decode("utf-8", "ignore")
    last = data[len(data) - tail :].decode("utf-8", "ignore")
    said = f"[truncated: {limit_bytes} of {len(data)} bytes shown, the middle left out]"
    return f"{said}\n{first}\n[... {len(data) - limit_bytes} bytes left out here ...]\n{last}"


class Severity(StrEnum):
    """How much a violation matters to whoever watches over the session."""

    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"


@frozen
class RunningCall:
    """A call that has not ended yet; `correlation_id` is the id of its card, `started_at` seconds since the epoch."""

    correlation_id: str
    turn_id: str
    tool: str
    started_at: float
    elapsed_ms: float


@frozen
class CallCounts:
    """What became of the calls so far. Times are of the latest calls, in ms, and without a person's thinking."""

    calls: int = 0
    succeeded: int = 0
    failed: int = 0
    denied: int = 0
    cancelled: int = 0
    violations: int = 0
    average_ms: float = 0.0
    p95_ms: float = 0.0
    bytes_in: int = 0
    bytes_out: int = 0


@frozen
class ToolStatistics:
    """The counts of one session: in all, and of each tool that was called; names that no tool has are in the total."""

    total: CallCounts = CallCounts()
    by_tool: Mapping[str, CallCounts] = field(factory=lambda: MappingProxyType({}))


@frozen
class ResourceEstimate:
    """What a call will probably take; None where nothing is known of it."""

    time_ms: float | None = None
    bytes_out: float | None = None
