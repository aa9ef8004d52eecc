"""Tokens and cost, as a provider reports them."""

from __future__ import annotations

from attrs import frozen


@frozen
class Usage:
    """Totals of one turn so far; zero where the provider says nothing, `cost_usd` None where no price is known."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_read_tokens: int = 0
    cached_write_tokens: int = 0
    requests: int = 0
    cost_usd: float | None = None

    def __add__(self, more: Usage) -> Usage:
        costs = [usage.cost_usd for usage in (self, more) if usage.cost_usd is not None]
        return Usage(
            self.input_tokens + more.input_tokens,
            self.output_tokens + more.output_tokens,
            self.cached_read_tokens + more.cached_read_tokens,
            self.cached_write_tokens + more.cached_write_tokens,
            self.requests + more.requests,
            sum(costs) if costs else None,
        )
