"""The card of one call: everything the client is told of it, in the order its life allows (A-11, M-04)."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import define, evolve, field

from punie.domain.content import ResultContent, Text
from punie.domain.events import ToolCallAnnounced, ToolCallUpdated
from punie.domain.execution import CallLife, CallStatus, cut
from punie.domain.json_value import JsonValue
from punie.domain.tool import ToolKind, ToolResult
from punie.ports.event_sink import EventSink
from punie.ports.tool_executor import CallProgress

SHOWN_LIMIT_BYTES = 65_536
"""What the client is shown of one text: it has the file or the terminal itself."""


@define
class CallCard(CallProgress):
    """Announced once, ended once; lives as long as its call."""

    call_id: str
    tool: str
    events: EventSink
    life: CallLife = field(factory=CallLife, init=False)
    _announced: bool = field(default=False, init=False)

    async def announce(
        self, *, title: str, kind: ToolKind, locations: tuple[str, ...] = (), raw_input: JsonValue = None
    ) -> None:
        """The card appears, pending."""
        self._announced = True
        await self.events.emit(ToolCallAnnounced(self.call_id, self.tool, title, kind, locations, raw_input))

    async def start(self) -> None:
        """Leave was given: the effect begins."""
        self.life.advance(CallStatus.IN_PROGRESS)
        await self.events.emit(ToolCallUpdated(self.call_id, CallStatus.IN_PROGRESS))

    async def show(self, *content: ResultContent) -> None:
        if not self.ended:
            await self.events.emit(ToolCallUpdated(self.call_id, content=_shown(content)))

    async def end(self, result: ToolResult) -> None:
        """The one end: completed where it succeeded, failed else. A second end is ignored, the first one stands."""
        if self.ended:
            return
        if not self._announced:
            await self.announce(title=self.tool, kind=ToolKind.OTHER)
        status = CallStatus.COMPLETED if result.succeeded else CallStatus.FAILED
        self.life.advance(status)
        await self.events.emit(ToolCallUpdated(self.call_id, status, _shown(result.content), _raw_output(result)))

    @property
    def ended(self) -> bool:
        """Whether the call reached its end."""
        return self.life.status.terminal


def _shown(content: tuple[ResultContent, ...]) -> tuple[ResultContent, ...]:
    return tuple(
        evolve(item, text=cut(item.text, SHOWN_LIMIT_BYTES)) if isinstance(item, Text) else item for item in content
    )


def _raw_output(result: ToolResult) -> JsonValue:
    """The structured result where it is small, else the text, cut."""
    text = result.text
    small = len(text) <= SHOWN_LIMIT_BYTES
    if isinstance(result.structured, Mapping) and small:
        return result.structured
    return {"output": cut(text, SHOWN_LIMIT_BYTES)}
