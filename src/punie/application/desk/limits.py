"""Bounds on calls that failed before and on long results."""

from __future__ import annotations

from attrs import define, evolve, field, frozen

from punie.application.desk.call import CallRequest
from punie.domain.tools.execution import cut, cut_after
from punie.domain.tools.tool import ToolKind, ToolOutcome, ToolResult
from punie.domain.values.terminal import KeptOutput
from punie.ports.workspace import OutputStore

FAILURES_ALLOWED = 3
"""How often the same call may fail before the next one is not run."""

_CHANGES_NOTHING = frozenset({ToolKind.READ, ToolKind.SEARCH, ToolKind.THINK})


@define
class LoopGuard:
    """Counts, within one turn, failures of the same tool with the same arguments; lives as long as the turn.

    A success starts the count anew: of everything where the call may have changed something, of itself where it only
    looked. So a test run that fails after each of many edits is no loop, and reading in between does not hide one.
    """

    _failures: dict[tuple[str, int], int] = field(factory=dict[tuple[str, int], int], init=False)

    def refusal(self, tool: str, arguments_json: str) -> ToolResult | None:
        """The result of a call that is not run because it failed too often; None where the call may run."""
        failures = self._failures.get((tool, hash(arguments_json)), 0)
        if failures < FAILURES_ALLOWED:
            return None
        return ToolResult.failure(
            f"Not run: this same call failed {failures} times in this turn, and nothing changed since. Read what it "
            "said, then change the arguments, use another tool, or tell the user what is in the way.",
            code="repeated_failure",
        )

    def note(self, tool: str, kind: ToolKind, arguments_json: str, result: ToolResult) -> None:
        """Count the end of a call."""
        key = (tool, hash(arguments_json))
        match result.outcome:
            case ToolOutcome.SUCCEEDED if kind in _CHANGES_NOTHING:
                self._failures.pop(key, None)
            case ToolOutcome.SUCCEEDED:
                self._failures.clear()
            case ToolOutcome.FAILED | ToolOutcome.DENIED if result.code != "repeated_failure":
                self._failures[key] = self._failures.get(key, 0) + 1
            case _:
                pass


@frozen
class OutputLimits:
    """Cuts long results for the model and keeps the whole text in the session's output store."""

    store: OutputStore

    async def limited(self, request: CallRequest, result: ToolResult) -> ToolResult:
        """The result itself where its text is short enough, else one with head and tail and the name of a file."""
        text, limit = result.text, request.limits.output_bytes
        if result.kept is not None:
            joined = await self._joined(result.kept, text, limit)
            if joined is not None:
                return evolve(result, for_model=joined)
            text = f"[the beginning of the output was dropped]\n{text}"
        short = cut(text, limit)
        if short is text:
            return result if text == result.text else evolve(result, for_model=text)
        # The text of a file is in that file already.
        path = None if request.tool.descriptor.gives_file else await self.store.keep(request.context.call_id, text)
        return evolve(result, for_model=short if path is None else short + _told(KeptOutput(path, 0)))

    async def _joined(self, kept: KeptOutput, text: str, limit: int) -> str | None:
        """Head and tail of an output whose beginning is in a file; None where the file is gone."""
        beginning = await self.store.beginning(kept.path, max(0, min(kept.before - kept.left_out, limit)))
        return None if beginning is None else cut_after(beginning, kept.before, text, limit) + _told(kept)


def _told(kept: KeptOutput) -> str:
    """The line below a cut text that tells the model where the whole text is."""
    all_of_it = "the whole of it" if not kept.left_out else f"all of it but {kept.left_out} bytes"
    return f"\n[{all_of_it} is in {kept.path} until the session ends; read_file reads it]"
