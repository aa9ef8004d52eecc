"""What was used, added up: by tool, model, session and day, and what was never used."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import TypeAlias, TypeVar

from attrs import frozen

from punie.domain.session.turn import CallRecord, TurnRecord
from punie.domain.tools.execution import OutcomeCounts, by_outcome
from punie.domain.tools.tool import ToolDescriptor, estimated_tokens

_Key = TypeVar("_Key", bound=Hashable)
_Record = TypeVar("_Record", CallRecord, TurnRecord)

DayOf: TypeAlias = Callable[[float], str]
"""The local day, as 2026-11-22, of seconds since the epoch."""


@frozen
class CallTotals(OutcomeCounts):
    """Calls by outcome; `time_ms` is what they ran, without what a person thought; bytes as the model saw them."""

    time_ms: float = 0.0
    bytes_in: int = 0
    bytes_out: int = 0

    @classmethod
    def of(cls, calls: Sequence[CallRecord]) -> CallTotals:
        """The sums over these calls."""
        return cls(
            **by_outcome(call.outcome for call in calls),
            time_ms=sum(call.elapsed_ms for call in calls),
            bytes_in=sum(call.bytes_in for call in calls),
            bytes_out=sum(call.bytes_out for call in calls),
        )


@frozen
class TurnTotals:
    """Turns and what the models counted; `cost_usd` adds the turns whose price is known, None where none is."""

    turns: int = 0
    requests: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float | None = None

    @classmethod
    def of(cls, turns: Sequence[TurnRecord]) -> TurnTotals:
        """The sums over these turns."""
        known = [turn.usage.cost_usd for turn in turns if turn.usage.cost_usd is not None]
        return cls(
            turns=len(turns),
            requests=sum(turn.usage.requests for turn in turns),
            input_tokens=sum(turn.usage.input_tokens for turn in turns),
            output_tokens=sum(turn.usage.output_tokens for turn in turns),
            cost_usd=sum(known) if known else None,
        )


@frozen
class ToolUsage:
    """One tool of one source."""

    tool: str
    source: str
    calls: CallTotals


@frozen
class PeriodUsage:
    """One session, by its id, or one day, as 2026-11-22."""

    name: str
    calls: CallTotals
    turns: TurnTotals


@frozen
class ModelUsage:
    """One model, as the settings name it."""

    model: str
    turns: TurnTotals


@frozen
class UnusedTool:
    """A tool that is offered and was not called; `tokens` estimates what it costs at each model request."""

    tool: str
    source: str
    tokens: int


@frozen
class UsageReport:
    """The sums over one period. Tools and models by how much they were used, sessions and days from old to new."""

    calls: CallTotals
    turns: TurnTotals
    by_tool: tuple[ToolUsage, ...]
    by_model: tuple[ModelUsage, ...]
    by_session: tuple[PeriodUsage, ...]
    by_day: tuple[PeriodUsage, ...]
    unused: tuple[UnusedTool, ...]

    @property
    def empty(self) -> bool:
        """Whether nothing was recorded."""
        return self.calls.calls == 0 and self.turns.turns == 0


def usage_report(
    calls: Sequence[CallRecord], turns: Sequence[TurnRecord], offered: Iterable[ToolDescriptor], day_of: DayOf
) -> UsageReport:
    """Add up the records. `offered` are the tools that a session would have; those without a call are unused."""
    tools = _grouped(calls, lambda call: (call.tool, call.source))
    models = _grouped(turns, lambda turn: turn.model)
    by_tool = (ToolUsage(tool, source, CallTotals.of(some)) for (tool, source), some in tools.items())
    by_model = (ModelUsage(model, TurnTotals.of(some)) for model, some in models.items())
    used = {tool for tool, _ in tools}
    idle = (tool for tool in offered if tool.name not in used)
    return UsageReport(
        calls=CallTotals.of(calls),
        turns=TurnTotals.of(turns),
        by_tool=tuple(sorted(by_tool, key=lambda row: (-row.calls.calls, row.tool, row.source))),
        by_model=tuple(sorted(by_model, key=lambda row: (-row.turns.requests, row.model))),
        by_session=_periods(calls, turns, lambda record: record.session_id),
        by_day=_periods(calls, turns, lambda record: day_of(record.started_at)),
        unused=tuple(UnusedTool(tool.name, tool.source.value, estimated_tokens(tool)) for tool in idle),
    )


def _grouped(records: Iterable[_Record], key: Callable[[_Record], _Key]) -> Mapping[_Key, list[_Record]]:
    groups: dict[_Key, list[_Record]] = {}
    for record in records:
        groups.setdefault(key(record), []).append(record)
    return groups


def _periods(
    calls: Sequence[CallRecord], turns: Sequence[TurnRecord], key: Callable[[CallRecord | TurnRecord], str]
) -> tuple[PeriodUsage, ...]:
    began: dict[str, float] = {}
    for record in (*calls, *turns):
        began[key(record)] = min(record.started_at, began.get(key(record), record.started_at))
    some_calls, some_turns = _grouped(calls, key), _grouped(turns, key)
    return tuple(
        PeriodUsage(name, CallTotals.of(some_calls.get(name, [])), TurnTotals.of(some_turns.get(name, [])))
        for name in sorted(began, key=lambda name: (began[name], name))
    )
