"""What a turn used so far, told as it grows."""

from __future__ import annotations

from attrs import define, evolve, field

from punie.api import EventSink, Usage, UsageChanged


@define
class Tally:
    """Lives as long as a turn, or as an order to compact."""

    events: EventSink
    _total: Usage = field(factory=Usage, init=False)

    async def add(self, used: Usage) -> None:
        """Add what a request used. The price is not known here: the SDK has no list of prices."""
        before = self._total
        self._total = evolve(
            before,
            input_tokens=before.input_tokens + used.input_tokens,
            output_tokens=before.output_tokens + used.output_tokens,
            cached_read_tokens=before.cached_read_tokens + used.cached_read_tokens,
            cached_write_tokens=before.cached_write_tokens + used.cached_write_tokens,
            requests=before.requests + used.requests,
        )
        await self.events.emit(UsageChanged(self._total))
