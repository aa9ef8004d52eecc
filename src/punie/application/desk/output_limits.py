"""What the model gets of a long result: head and tail, and the name of a file with the whole of it (S2-33)."""

from __future__ import annotations

from attrs import evolve, frozen

from punie.application.desk.call import CallRequest
from punie.domain.tools.execution import cut, cut_after
from punie.domain.tools.tool import ToolResult
from punie.domain.values.terminal import KeptOutput
from punie.ports.workspace import OutputStore


@frozen
class OutputLimits:
    """Cuts results and has the whole kept; bound to one session."""

    store: OutputStore

    async def limited(self, call_id: str, request: CallRequest, result: ToolResult) -> ToolResult:
        """The result itself where its text is short enough, else one with the text cut."""
        text, limit = result.text, request.limits.output_bytes
        if result.kept is not None:
            joined = await self._joined(result.kept, text, limit)
            if joined is not None:
                return evolve(result, for_model=joined)
            text = f"[the beginning of the output was dropped]\n{text}"
        short = cut(text, limit)
        if short is text:
            return result if text == result.text else evolve(result, for_model=text)
        # What read_file gave stands in a file already.
        path = None if request.call.name == "read_file" else await self.store.keep(call_id, text)
        return evolve(result, for_model=short if path is None else short + told(KeptOutput(path, 0)))

    async def _joined(self, kept: KeptOutput, text: str, limit: int) -> str | None:
        """Head and tail of an output whose beginning stands in a file; None where the file is gone."""
        beginning = await self.store.beginning(kept.path, max(0, min(kept.before - kept.left_out, limit)))
        return None if beginning is None else cut_after(beginning, kept.before, text, limit) + told(kept)


def told(kept: KeptOutput) -> str:
    """Where the whole is, as the model reads it below what it got."""
    all_of_it = "the whole of it" if not kept.left_out else f"all of it but {kept.left_out} bytes"
    return f"\n[{all_of_it} is in {kept.path} until the session ends; read_file reads it]"
