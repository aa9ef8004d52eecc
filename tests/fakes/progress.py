"""What a running call showed."""

from __future__ import annotations

from attrs import define, field

from punie.domain.tools.tool import ToolResult
from punie.domain.values.content import ResultContent
from punie.ports.tools import CallProgress


@define
class FakeProgress(CallProgress):
    """Keeps everything that was shown, oldest first; `now` is what the person sees."""

    shown: list[tuple[ResultContent, ...]] = field(factory=list)
    call_id: str = "call-1"
    left: ToolResult | None = None
    reported: list[tuple[str, float | None]] = field(factory=list)

    async def show(self, *content: ResultContent) -> None:
        self.shown.append(content)

    async def report(self, message: str, fraction: float | None = None) -> None:
        self.reported.append((message, fraction))

    def leave(self, so_far: ToolResult) -> None:
        self.left = so_far

    @property
    def now(self) -> tuple[ResultContent, ...]:
        return self.shown[-1] if self.shown else ()
