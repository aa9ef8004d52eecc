"""The report on a run of a pipeline: how each step ended, and the output or the step that stopped the run."""

from __future__ import annotations

import json

from attrs import define, field, frozen

from punie.domain.pipelines.expressions import weight
from punie.domain.pipelines.pipeline import OUTPUT_LIMIT, Pipeline, Step, StepStatus
from punie.domain.tools.tool import ToolResult
from punie.domain.values.display import one_line
from punie.domain.values.json_value import JsonValue, thaw

REASON_CHARS = 2_000
STOPPED = "step_failed"
STOPPED_BY_DENIAL = "step_denied"


@define
class StepReport:
    """The status of one step; `calls` counts its calls, `failed` those calls of a loop that did not succeed."""

    step: Step
    status: StepStatus = StepStatus.NOT_RUN
    calls: int = 0
    failed: int = 0

    def told(self) -> dict[str, object]:
        """The entry of the step in the structured result."""
        entry: dict[str, object] = {"id": self.step.id, "tool": self.step.tool, "status": self.status.value}
        if self.step.for_each is not None:
            entry |= {"calls": self.calls, "failed": self.failed}
        return entry


@frozen
class Stop:
    """The step that ended the run, the item it was at, and why."""

    step: Step
    reason: str
    index: int | None


@define
class RunReport:
    """The record of one run; lives as long as the run. `stopped` is set by the step that ends the run early."""

    pipeline: Pipeline
    stopped: Stop | None = None
    _steps: dict[str, StepReport] = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._steps = {step.id: StepReport(step) for step in self.pipeline.steps}

    def begin(self, step: Step) -> StepReport:
        """Begin a step; the status is cancelled until the step sets another one."""
        report = self._steps[step.id]
        report.status = StepStatus.CANCELLED
        return report

    def success(self, output: JsonValue) -> ToolResult:
        """The result of a run that came to its end."""
        size = weight(output, OUTPUT_LIMIT)
        if size > OUTPUT_LIMIT:
            return self.no_output(f"it is larger than {OUTPUT_LIMIT} characters; take less into [output]")
        text = output if isinstance(output, str) else json.dumps(thaw(output), ensure_ascii=False, indent=2)
        passed_over = [report for report in self._steps.values() if report.status in _WORDS]
        if passed_over:
            told = ", ".join(f"{one.step.id} {one.status.value}" for one in passed_over)
            text = f"{text}\n[went on although not all succeeded: {told}]"
        return ToolResult.success(text, structured={"output": thaw(output), "steps": self._told()})

    def no_output(self, reason: str) -> ToolResult:
        """The result of a run whose steps all ran, but whose [output] cannot be computed or told."""
        return ToolResult.failure(
            f"{self.pipeline.name} ran all its steps, but its output cannot be told: {reason}. "
            "What the steps did stands.",
            code="pipeline_output",
            structured={"output": None, "steps": self._told()},
        )

    def failure(self, stop: Stop) -> ToolResult:
        """The result of a run that stopped; the effects of earlier steps stay."""
        ids = [step.id for step in self.pipeline.steps]
        status = self._steps[stop.step.id].status
        item = "" if stop.index is None else f", item {stop.index}"
        done = [one.step.id for one in self._steps.values() if one.status is StepStatus.SUCCEEDED]
        never = [one.step.id for one in self._steps.values() if one.status is StepStatus.NOT_RUN]
        reason = stop.reason if len(stop.reason) <= REASON_CHARS else one_line(stop.reason, REASON_CHARS)
        text = (
            f"{self.pipeline.name} stopped at step {ids.index(stop.step.id) + 1} of {len(ids)}, "
            f"{stop.step.id} ({stop.step.tool}{item}), which {_WORDS[status]}: {reason}\n"
            f"Done before it: {', '.join(done) or 'nothing'}.\n"
            f"Not run: {', '.join(never) or 'nothing'}."
        )
        stopped = {"step": stop.step.id, "tool": stop.step.tool, "status": status.value, "reason": reason}
        at = {} if stop.index is None else {"item": stop.index}
        return ToolResult.failure(
            text,
            code=STOPPED_BY_DENIAL if status is StepStatus.DENIED else STOPPED,
            structured={"output": None, "steps": self._told(), "stopped": {**stopped, **at}},
        )

    def _told(self) -> list[dict[str, object]]:
        return [report.told() for report in self._steps.values()]


_WORDS = {StepStatus.FAILED: "failed", StepStatus.DENIED: "was denied", StepStatus.CANCELLED: "was cancelled"}
