"""What the model gets of a long result: head and tail, and the name of a file with the whole of it (S2-33)."""

from __future__ import annotations

from attrs import evolve, frozen

from punie.application.call_request import CallRequest
from punie.domain.execution import cut
from punie.domain.tool import ToolResult
from punie.ports.output_store import OutputStore


@frozen
class OutputLimits:
    """Cuts results and has the whole kept; bound to one session."""

    store: OutputStore

    async def limited(self, call_id: str, request: CallRequest, result: ToolResult) -> ToolResult:
        """The result itself where its text is short enough, else one with the text cut."""
        text = result.text
        short = cut(text, request.limits.output_bytes)
        if short is text:
            return result
        # What read_file gave stands in a file already.
        path = None if request.call.name == "read_file" else await self.store.keep(call_id, text)
        where = "" if path is None else f"\n[the whole of it is in {path} until the session ends; read_file reads it]"
        return evolve(result, for_model=short + where)
