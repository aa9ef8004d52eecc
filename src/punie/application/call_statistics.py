"""How the calls of a session went, counted once each (S2-29, S2-35)."""

from __future__ import annotations

import math
from collections import Counter, deque
from types import MappingProxyType

from attrs import define, field

from punie.domain.execution import CallCounts, ResourceEstimate, ToolStatistics
from punie.domain.records import CallRecord
from punie.domain.tool import ToolOutcome

WINDOW = 256
"""The latest calls whose times are kept for each tool."""


@define
class _Tally:
    outcomes: Counter[ToolOutcome] = field(factory=Counter[ToolOutcome])
    violations: int = 0
    bytes_in: int = 0
    bytes_out: int = 0
    times_ms: deque[float] = field(factory=lambda: deque[float](maxlen=WINDOW))

    def add(self, record: CallRecord, *, violated: bool) -> None:
        self.outcomes[record.outcome] += 1
        self.violations += violated
        self.bytes_in += record.bytes_in
        self.bytes_out += record.bytes_out
        self.times_ms.append(record.elapsed_ms)

    def counts(self) -> CallCounts:
        return CallCounts(
            calls=self.outcomes.total(),
            succeeded=self.outcomes[ToolOutcome.SUCCEEDED],
            failed=self.outcomes[ToolOutcome.FAILED],
            denied=self.outcomes[ToolOutcome.DENIED],
            cancelled=self.outcomes[ToolOutcome.CANCELLED],
            violations=self.violations,
            average_ms=sum(self.times_ms) / len(self.times_ms) if self.times_ms else 0.0,
            p95_ms=_p95(self.times_ms),
            bytes_in=self.bytes_in,
            bytes_out=self.bytes_out,
        )


@define
class CallStatistics:
    """Counts of one session in bounded memory: one row a tool that exists, however many names a model makes up."""

    _total: _Tally = field(factory=_Tally, init=False)
    _tools: dict[str, _Tally] = field(factory=dict[str, _Tally], init=False)

    def add(self, record: CallRecord, *, known: bool, violated: bool) -> None:
        """Count a finished call; `known` says that there is a tool of that name."""
        self._total.add(record, violated=violated)
        if known:
            tally = self._tools.get(record.tool)
            if tally is None:
                tally = self._tools[record.tool] = _Tally()
            tally.add(record, violated=violated)

    def snapshot(self) -> ToolStatistics:
        """The counts as they are now."""
        by_tool = {name: tally.counts() for name, tally in self._tools.items()}
        return ToolStatistics(self._total.counts(), MappingProxyType(by_tool))

    def expected(self, tool: str, declared_ms: int | None) -> ResourceEstimate | None:
        """What the next call of that tool will take: what was seen, else what it declares, else nothing (S2-26)."""
        tally = self._tools.get(tool)
        succeeded = 0 if tally is None else tally.outcomes[ToolOutcome.SUCCEEDED]
        if tally is not None and succeeded:
            seen = tally.counts()
            return ResourceEstimate(seen.average_ms, seen.bytes_out / seen.calls)
        return None if declared_ms is None else ResourceEstimate(float(declared_ms))


def _p95(times_ms: deque[float]) -> float:
    if not times_ms:
        return 0.0
    ordered = sorted(times_ms)
    return ordered[math.ceil(0.95 * len(ordered)) - 1]
