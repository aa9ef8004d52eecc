"""How the calls of a session went, counted once each (S2-29, S2-35)."""

from __future__ import annotations

import math
from collections import Counter, deque
from types import MappingProxyType

from attrs import define, field, frozen

from punie.domain.session.records import CallRecord
from punie.domain.tools.execution import CallCounts, ToolStatistics, by_outcome
from punie.domain.tools.tool import ToolOutcome

WINDOW = 256
"""The latest calls whose times are kept for each tool."""

ENOUGH = 3
"""So many calls of about the same size say more of the next one than all of them do."""


@frozen
class Seen:
    """A call that succeeded, or the average of several."""

    bytes_in: float
    elapsed_ms: float
    bytes_out: float


@define
class _Tally:
    outcomes: Counter[ToolOutcome] = field(factory=Counter[ToolOutcome])
    violations: int = 0
    bytes_in: int = 0
    bytes_out: int = 0
    times_ms: deque[float] = field(factory=lambda: deque[float](maxlen=WINDOW))
    done: deque[Seen] = field(factory=lambda: deque[Seen](maxlen=WINDOW))

    def add(self, record: CallRecord, *, violated: bool) -> None:
        self.outcomes[record.outcome] += 1
        self.violations += violated
        self.bytes_in += record.bytes_in
        self.bytes_out += record.bytes_out
        self.times_ms.append(record.elapsed_ms)
        if record.outcome is ToolOutcome.SUCCEEDED:
            self.done.append(Seen(record.bytes_in, record.elapsed_ms, record.bytes_out))

    def counts(self) -> CallCounts:
        return CallCounts(
            **by_outcome(self.outcomes),
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

    def expected(self, tool: str, bytes_in: int) -> Seen | None:
        """The average of the tool's latest calls that succeeded, of about that size where there were enough such.

        None where none succeeded yet: what failed or was denied says nothing of what the work takes.
        """
        tally = self._tools.get(tool)
        if tally is None or not tally.done:
            return None
        alike = [seen for seen in tally.done if bytes_in / 2 <= seen.bytes_in <= bytes_in * 2]
        used = alike if len(alike) >= ENOUGH else tally.done
        return Seen(
            sum(seen.bytes_in for seen in used) / len(used),
            sum(seen.elapsed_ms for seen in used) / len(used),
            sum(seen.bytes_out for seen in used) / len(used),
        )


def _p95(times_ms: deque[float]) -> float:
    if not times_ms:
        return 0.0
    ordered = sorted(times_ms)
    return ordered[math.ceil(0.95 * len(ordered)) - 1]
