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
