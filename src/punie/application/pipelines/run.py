"""One run of a pipeline: its steps are calls through the desk, made in their order as far as they succeed."""

from __future__ import annotations

from collections.abc import Mapping

import anyio
from attrs import define, field, frozen

from punie.application.pipelines.outcome import RunReport, StepReport, Stop
from punie.application.tools.session_tool import Composition
from punie.domain.errors import LimitExceededError
from punie.domain.pipelines.expressions import (
    INDEX,
    INPUTS,
    ITEM,
    LOOP_NAMES,
    STEPS,
    Expression,
    ExpressionError,
    StepView,
)
from punie.domain.pipelines.pipeline import ITEMS_LIMIT, OnError, Pipeline, Step, StepStatus, stages, with_defaults
from punie.domain.pipelines.templates import Filling
from punie.domain.tools.tool import ToolCall, ToolResult
from punie.domain.values.display import one_line
from punie.domain.values.json_value import EMPTY_OBJECT, JsonObject, JsonValue
from punie.ports.tools import CallProgress, Expressions

Names = Mapping[str, "JsonValue | Mapping[str, StepView]"]


@frozen
class _Ended:
    """The end of one call of a step, or of a step without a call."""

    status: StepStatus
    data: JsonValue = None
    text: str = ""

    @property
    def well(self) -> bool:
        return self.status in {StepStatus.SUCCEEDED, StepStatus.SKIPPED}


_SKIPPED = _Ended(StepStatus.SKIPPED)


@define
class PipelineRun:
    """A run of a pipeline; lives as long as the call of the pipeline, whose cancellation ends the steps under way."""

    pipeline: Pipeline
    calls: Composition
    expressions: Expressions
    progress: CallProgress
    report: RunReport = field(init=False)
    _inputs: JsonObject = field(default=EMPTY_OBJECT, init=False)
    _views: dict[str, StepView] = field(factory=dict[str, StepView], init=False)
    _done: int = field(default=0, init=False)

    def __attrs_post_init__(self) -> None:
        self.report = RunReport(self.pipeline)

    async def run(self, arguments: JsonObject) -> ToolResult:
        """Run every step; returns the output, or the step that stopped the run, with the status of each step."""
        self._inputs = with_defaults(self.pipeline.inputs, arguments)
        for stage in stages(self.pipeline.steps):
            if len(stage) == 1:
                await self._step(stage[0])
            else:
                await self._together(stage)
            if self.report.stopped is not None:
                return self.report.failure(self.report.stopped)
        try:
            return self.report.success(self._output())
        except ExpressionError as error:
            return self.report.no_output(str(error))

    def _output(self) -> JsonValue:
        if self.pipeline.output is None:
            return self._views[self.pipeline.steps[-1].id].output
        return self._filling(self._names()).fill(self.pipeline.output)

    async def _together(self, stage: tuple[Step, ...]) -> None:
        async with anyio.create_task_group() as tasks:

            async def one(step: Step) -> None:
                await self._step(step)
                if self.report.stopped is not None:
                    tasks.cancel_scope.cancel()  # nothing goes on beside a step that stops the run

            for step in stage:
                tasks.start_soon(one, step)

    async def _step(self, step: Step) -> None:
        """Run a step, and keep its result for the steps after it."""
        await self._say(step)
        report = self.report.begin(step)
        try:
            items = self._items(step)
        except ExpressionError as error:
            self._keep(step, report, _not_called(error), None)
            return
        if items is None:
            self._keep(step, report, await self._call(step, report, self._names(), None), None)
        else:
            all_ended = await self._loop(step, report, items)
            self._keep(step, report, _worst(all_ended), all_ended)

    def _items(self, step: Step) -> tuple[JsonValue, ...] | None:
        """The items of a loop, none where it is skipped; None for a step that is one call."""
        if step.for_each is None:
            return None
        if not _by_item(step.when) and not self._wanted(step, self._names()):
            return ()
        found = self._filling(self._names()).fill(step.for_each)
        if not isinstance(found, tuple):
            raise ExpressionError("for_each did not come to a list")
        if len(found) > ITEMS_LIMIT:
            raise ExpressionError(f"for_each came to {len(found)} items; at most {ITEMS_LIMIT} are gone through")
        return found

    async def _loop(self, step: Step, report: StepReport, items: tuple[JsonValue, ...]) -> list[_Ended]:
        """Make a call for each item, `at_once` at the same time; after one that stops the run no other begins."""
        ended = [_Ended(StepStatus.NOT_RUN)] * len(items)
        ahead = iter(enumerate(items))
        over = 0

        async with anyio.create_task_group() as tasks:

            async def work() -> None:
                nonlocal over
                for index, item in ahead:
                    names = {**self._names(), ITEM: item, INDEX: index}
                    ended[index] = await self._call(step, report, names, index)
                    over += 1
                    if self._stops(step, ended[index]):
                        tasks.cancel_scope.cancel()
                        return
                    await self._say(step, f" {over}/{len(items)}")

            for _ in range(min(step.at_once, len(items))):
                tasks.start_soon(work)
        return ended

    async def _call(self, step: Step, report: StepReport, names: Names, index: int | None) -> _Ended:
        try:
            if (index is None or _by_item(step.when)) and not self._wanted(step, names):
                return _SKIPPED
            arguments = self._filling(names).fill(step.arguments)
        except ExpressionError as error:
            return _not_called(error)
        place = "" if index is None else f".{index}"
        report.calls += 1
        try:
            call = ToolCall(f"{self.progress.call_id}.{step.id}{place}", step.tool, arguments)
            result = await self.calls.call(call)
        except LimitExceededError as error:
            return _Ended(StepStatus.FAILED, None, str(error))
        return _Ended(StepStatus(result.outcome.value), result.data, result.text)

    def _wanted(self, step: Step, names: Names) -> bool:
        return step.when if isinstance(step.when, bool) else bool(self._value(step.when, names))

    def _keep(self, step: Step, report: StepReport, ended: _Ended, each: list[_Ended] | None) -> None:
        """End a step: keep its result for the other steps, and stop the run where that is to be."""
        self._done += 1
        report.status = ended.status
        if each is None:
            data = ended.data if ended.well else step.fallback
            self._views[step.id] = StepView(data, ended.text, ended.status.value)
        else:
            report.failed = sum(not one.well for one in each)
            self._views[step.id] = StepView(
                tuple(one.data if one.well else step.fallback for one in each),
                tuple(one.text for one in each),
                tuple(one.status.value for one in each),
            )
        if self._stops(step, ended) and self.report.stopped is None:
            index = None if each is None else next(place for place, one in enumerate(each) if one is ended)
            self.report.stopped = Stop(step, ended.text, index)

    def _stops(self, step: Step, ended: _Ended) -> bool:
        # A step that was stopped by itself, or with its turn, ends the run whatever the file says.
        return not ended.well and (step.on_error is OnError.STOP or ended.status is StepStatus.CANCELLED)

    def _names(self) -> dict[str, JsonValue | Mapping[str, StepView]]:
        return {INPUTS: self._inputs, STEPS: self._views}

    def _filling(self, names: Names) -> Filling:
        return Filling(lambda expression: self._value(expression, names), self.calls.bounds.work.spend)

    def _value(self, expression: Expression, names: Names) -> JsonValue:
        try:
            return self.expressions.value(expression, names, self.calls.bounds.work)
        except ExpressionError as error:
            raise ExpressionError(f"${{{one_line(expression.text, 200)}}}: {error}") from None

    async def _say(self, step: Step, items: str = "") -> None:
        steps = self.pipeline.steps
        await self.progress.report(f"{steps.index(step) + 1}/{len(steps)} {step.id}{items}", self._done / len(steps))


def _not_called(error: ExpressionError) -> _Ended:
    return _Ended(StepStatus.FAILED, None, f"{error}.")


def _by_item(when: Expression | bool) -> bool:
    """Whether a condition names the item of a loop, so that it is about each call."""
    return not isinstance(when, bool) and any(one.path[0] in LOOP_NAMES for one in when.references)


def _worst(ended: list[_Ended]) -> _Ended:
    """The end of a loop: that of its first call that did not go well, else that it succeeded or was skipped."""
    for one in ended:
        if not one.well and one.status is not StepStatus.NOT_RUN:
            return one
    done = any(one.status is StepStatus.SUCCEEDED for one in ended)
    return _Ended(StepStatus.SUCCEEDED if done else StepStatus.SKIPPED)
