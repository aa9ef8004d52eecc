"""A model that repeats what just failed is told so instead of being obeyed."""

from __future__ import annotations

from attrs import define, field

from punie.domain.tools.tool import ToolKind, ToolOutcome, ToolResult

FAILURES_ALLOWED = 3
"""How often the same call may fail before the next one is not run."""

_CHANGES_NOTHING = frozenset({ToolKind.READ, ToolKind.SEARCH, ToolKind.THINK})


@define
class LoopGuard:
    """Counts, within one turn, failures of the same tool with the same arguments.

    A success starts the count anew: of everything where the call may have changed something, of itself where it only
    looked. So a test run that fails after each of many edits is no loop, and reading in between does not hide one.
    """

    _failures: dict[tuple[str, int], int] = field(factory=dict[tuple[str, int], int], init=False)

    def refusal(self, tool: str, arguments_json: str) -> ToolResult | None:
        """What to answer instead of running the call; None where it may run."""
        failures = self._failures.get((tool, hash(arguments_json)), 0)
        if failures < FAILURES_ALLOWED:
            return None
        return ToolResult.failure(
            f"Not run: this same call failed {failures} times in this turn, and nothing changed since. Read what it "
            "said, then change the arguments, use another tool, or tell the user what is in the way.",
            code="repeated_failure",
        )

    def note(self, tool: str, kind: ToolKind, arguments_json: str, result: ToolResult) -> None:
        """Take in how a call ended."""
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
