"""Pipelines as tools of a session: each pipeline that can run is a tool."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeAlias

from attrs import define, field, frozen

from punie.application.pipelines.run import PipelineRun
from punie.application.tools.session_tool import CallContext, Composition, PreparedCall, SessionTool, only_in_a_turn
from punie.domain.pipelines.pipeline import Pipeline
from punie.domain.tools.tool import ToolDescriptor, ToolResult
from punie.domain.values.display import one_line
from punie.domain.values.json_value import JsonObject
from punie.ports.tools import CallProgress, Expressions


@frozen
class ComposedTool(SessionTool):
    """A pipeline as a tool, without an effect of its own: each step is a call with its own permission."""

    pipeline: Pipeline
    expressions: Expressions

    @property
    def descriptor(self) -> ToolDescriptor:
        return self.pipeline.descriptor

    def title(self, arguments: JsonObject) -> str:
        given = ", ".join(f"{name}={value}" for name, value in arguments.items() if isinstance(value, (str, int)))
        return one_line(f"Running {self.pipeline.name}{f' ({given})' if given else ''}")

    def denial(self, arguments: JsonObject) -> str:
        return f"Permission denied to run {self.pipeline.name}"

    def paths(self, arguments: JsonObject) -> tuple[str, ...]:
        return ()

    async def prepare(self, arguments: JsonObject, context: CallContext) -> PreparedCall:
        async def composed(calls: Composition, progress: CallProgress) -> ToolResult:
            return await PipelineRun(self.pipeline, calls, self.expressions, progress).run(arguments)

        return PreparedCall(only_in_a_turn, composed=composed)


LoadPipelines: TypeAlias = Callable[[], Awaitable[tuple[Pipeline, ...]]]


@define
class PipelineTools:
    """Offers the pipelines that can run here; lives as long as the session, and loads the pipelines once.

    Pipelines come last: of tools with one name any other counts. A pipeline that lacks a tool is not offered.
    """

    load: LoadPipelines
    expressions: Expressions
    log: logging.Logger
    pipelines: tuple[Pipeline, ...] | None = field(default=None, init=False)
    _said: set[str] = field(factory=set[str], init=False)
    _made: dict[str, ComposedTool] = field(factory=dict[str, ComposedTool], init=False)

    async def __call__(self, others: Iterable[SessionTool]) -> tuple[SessionTool, ...]:
        """The pipelines that can run with these other tools."""
        if self.pipelines is None:
            self.pipelines = await self.load()
        taken = {tool.descriptor.name for tool in others}
        free: list[Pipeline] = []
        for pipeline in self.pipelines:
            if pipeline.name in taken:
                self._say(f"the pipeline {pipeline.name} is left out: another tool has its name")
            else:
                free.append(pipeline)
        return tuple(self._tool(pipeline) for pipeline in self._runnable(free, taken))

    def _runnable(self, pipelines: list[Pipeline], taken: set[str]) -> list[Pipeline]:
        """The pipelines whose tools all exist; a pipeline that needs one that cannot run cannot run either."""
        while True:
            names = taken | {pipeline.name for pipeline in pipelines}
            can: list[Pipeline] = []
            for pipeline in pipelines:
                lacking = [tool for tool in pipeline.tools if tool not in names]
                if lacking:
                    self._say(f"the pipeline {pipeline.name} is not offered: there is no {', '.join(lacking)} here")
                else:
                    can.append(pipeline)
            if len(can) == len(pipelines):
                return can
            pipelines = can

    def _tool(self, pipeline: Pipeline) -> ComposedTool:
        if pipeline.name not in self._made:
            self._made[pipeline.name] = ComposedTool(pipeline, self.expressions)
        return self._made[pipeline.name]

    def _say(self, line: str) -> None:
        if line not in self._said:
            self._said.add(line)
            self.log.info("%s", line)
