"""Calls made by a composed call: through the desk of its turn like any other, within bounds they all share."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeAlias

from attrs import define, field, frozen

from punie.domain.errors import LimitExceededError
from punie.domain.pipelines.expressions import WorkLeft
from punie.domain.tools.tool import ToolCall, ToolResult

CALLS_LIMIT = 1_000
"""Calls that one run may come to, those of composed calls in it counted too."""

DEPTH_LIMIT = 5
"""How deep composed calls may stand in one another."""


@define
class Bounds:
    """What one outermost composed call, and all composed calls in it, may come to; lives as long as it."""

    calls: int = CALLS_LIMIT
    work: WorkLeft = field(factory=WorkLeft)


CallWithin: TypeAlias = "Callable[[ToolCall, Composition], Awaitable[ToolResult]]"


@frozen
class Composition:
    """The desk as one composed call sees it; lives as long as it."""

    tool: str
    call_within: CallWithin
    depth: int = 1
    bounds: Bounds = field(factory=Bounds)

    async def call(self, call: ToolCall) -> ToolResult:
        """One call, with its own card, question, limits and record. Raises `LimitExceededError` beyond the bounds."""
        if self.bounds.calls <= 0:
            raise LimitExceededError(self.tool, f"it came to more than {CALLS_LIMIT} calls. Do it in parts")
        self.bounds.calls -= 1
        return await self.call_within(call, self)

    def deeper(self, tool: str) -> Composition:
        """As a composed call in this one sees it. Raises `LimitExceededError` where that is too deep."""
        if self.depth >= DEPTH_LIMIT:
            raise LimitExceededError(tool, f"it stands {DEPTH_LIMIT} deep in other composed calls, which is the limit")
        return Composition(tool, self.call_within, self.depth + 1, self.bounds)
