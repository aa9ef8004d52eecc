"""The use of the model's context and the cost of a session, as the client is told (ACP, `usage_update`)."""

from __future__ import annotations

from attrs import define, evolve, field

from punie.domain.model.usage import Usage
from punie.domain.session.events import ContextUsed, UsageChanged


@define
class ContextGauge:
    """Counts tokens and cost; lives as long as the session.

    `size_tokens` is the size of the model's context, where the settings or the model's name tell it. `continued` says
    that the session goes on from another process, and `before` is the last `ContextUsed` of its log. Without a cost in
    that event the cost of the whole session is not known.
    """

    size_tokens: int | None = None
    continued: bool = False
    before: ContextUsed | None = None
    latest: ContextUsed | None = field(default=None, init=False)
    _settled: Usage = field(factory=Usage, init=False)
    _turn: Usage = field(factory=Usage, init=False)

    def __attrs_post_init__(self) -> None:
        before = self.before
        if before is not None:
            self.latest = before if self.size_tokens is None else evolve(before, size_tokens=self.size_tokens)

    @property
    def spent(self) -> Usage:
        """The usage since the session was opened in this process."""
        return _sum(self._settled, self._turn)

    @property
    def cost_usd(self) -> float | None:
        """The cost of the session so far, in US dollars; None where that is not known."""
        here = self.spent.cost_usd
        if not self.continued:
            return here
        before = None if self.before is None else self.before.cost_usd
        return None if before is None else before + (here or 0.0)

    def count(self, event: UsageChanged) -> None:
        """Take the turn's totals so far."""
        self._turn = event.usage

    def end_turn(self) -> None:
        """Add the turn's totals to those of the session; later totals are the next turn's."""
        self._settled, self._turn = self.spent, Usage()

    def read(self, event: ContextUsed) -> ContextUsed:
        """The event with the session's cost added, and the size where the engine gave none."""
        size = self.size_tokens if event.size_tokens is None else event.size_tokens
        self.latest = evolve(event, size_tokens=size, cost_usd=self.cost_usd)
        return self.latest


def _sum(one: Usage, other: Usage) -> Usage:
    costs = [usage.cost_usd for usage in (one, other) if usage.cost_usd is not None]
    return Usage(
        one.input_tokens + other.input_tokens,
        one.output_tokens + other.output_tokens,
        one.cached_read_tokens + other.cached_read_tokens,
        one.cached_write_tokens + other.cached_write_tokens,
        one.requests + other.requests,
        sum(costs) if costs else None,
    )
