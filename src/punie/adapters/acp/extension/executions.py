"""What runs in a session, and stopping one call of it: `_punie.dev/executions`, `_punie.dev/cancel_executions`."""

from __future__ import annotations

from msgspec import Raw

from punie.adapters.acp.handshake import Params, decode_params
from punie.domain.tools.execution import CallCounts, RunningCall, ToolStatistics
from punie.ports.agent import Agent

EXECUTIONS = "_punie.dev/executions"
CANCEL_EXECUTIONS = "_punie.dev/cancel_executions"


class ExecutionsParams(Params):
    """`_punie.dev/executions`."""

    session_id: str


class CancelExecutionsParams(Params):
    """`_punie.dev/cancel_executions`; `correlation_id` is a toolCallId, or a turn's id for all of its calls."""

    session_id: str
    correlation_id: str


async def executions(agent: Agent, raw: Raw) -> object:
    """The calls that run now and the counts of those that ended."""
    session_id = decode_params(raw, ExecutionsParams).session_id
    running = agent.running_calls(session_id)
    return {
        "running": [_running(call) for call in running],
        "statistics": _statistics(agent.call_statistics(session_id)),
    }


async def cancel_executions(agent: Agent, raw: Raw) -> object:
    """Stop the calls of that id; says how many there were."""
    params = decode_params(raw, CancelExecutionsParams)
    return {"cancelled": agent.cancel_calls(params.session_id, params.correlation_id)}


def _running(call: RunningCall) -> dict[str, object]:
    return {
        "correlationId": call.correlation_id,
        "turnId": call.turn_id,
        "tool": call.tool,
        "startedAt": call.started_at,
        "elapsedMs": round(call.elapsed_ms, 3),
    }


def _statistics(statistics: ToolStatistics) -> dict[str, object]:
    tools = {name: _counts(counts) for name, counts in statistics.by_tool.items()}
    return {"total": _counts(statistics.total), "tools": tools}


def _counts(counts: CallCounts) -> dict[str, object]:
    return {
        "calls": counts.calls,
        "succeeded": counts.succeeded,
        "failed": counts.failed,
        "denied": counts.denied,
        "cancelled": counts.cancelled,
        "violations": counts.violations,
        "averageMs": round(counts.average_ms, 3),
        "p95Ms": round(counts.p95_ms, 3),
        "bytesIn": counts.bytes_in,
        "bytesOut": counts.bytes_out,
    }
