"""The pipelines of a session among its tools."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeAlias

from attrs import define, field

from punie.application.pipelines.composed_tool import ComposedTool
from punie.application.tools.session_tool import SessionTool
from punie.domain.pipelines.pipeline import Pipeline
from punie.ports.tools import Expressions

LoadPipelines: TypeAlias = Callable[[], Awaitable[tuple[Pipeline, ...]]]


@define
class PipelineTools:
    """Offers the pipelines that can run here; lives as long as the session, and so does what it loaded once.

    They come last: any other tool of a name has it. One whose tools are not all there is not offered.
    """

    load: LoadPipelines
    expressions: Expressions
    log: logging.Logger
    pipelines: tuple[Pipeline, ...] | None = field(default=None, init=False)
    _said: set[str] = field(factory=set[str], init=False)
    _made: dict[str, ComposedTool] = field(factory=dict[str, ComposedTool], init=False)

    async def __call__(self, others: Iterable[SessionTool]) -> tuple[SessionTool, ...]:
        """Those that go with these other tools."""
        if self.pipelines is None:
            self.pipelines = await self.load()
        taken = {tool.descriptor.name for tool in others}
        free = [pipeline for pipeline in self.pipelines if pipeline.name not in taken]
        for pipeline in self.pipelines:
            if pipeline.name in taken:
                self._say(f"the pipeline {pipeline.name} is left out: another tool has its name")
        can = self._runnable(free, taken)
        return tuple(self._tool(pipeline) for pipeline in can)

    def missing(self, pipeline: Pipeline, names: Iterable[str]) -> tuple[str, ...]:
        """The tools that it calls and that are not there."""
        there = set(names)
        return tuple(tool for tool in pipeline.tools if tool not in there)

    def _runnable(self, pipelines: list[Pipeline], taken: set[str]) -> list[Pipeline]:
        """Those whose tools are all there; one that needs a pipeline that cannot run cannot either."""
        can = list(pipelines)
        while True:
            names = taken | {pipeline.name for pipeline in can}
            stays = [pipeline for pipeline in can if not self.missing(pipeline, names)]
            if len(stays) == len(can):
                return can
            for pipeline in can:
                lacking = self.missing(pipeline, names)
                if lacking:
                    self._say(f"the pipeline {pipeline.name} is not offered: there is no {', '.join(lacking)} here")
            can = stays

    def _tool(self, pipeline: Pipeline) -> ComposedTool:
        if pipeline.name not in self._made:
            self._made[pipeline.name] = ComposedTool(pipeline, self.expressions, self.log)
        return self._made[pipeline.name]

    def _say(self, line: str) -> None:
        if line not in self._said:
            self._said.add(line)
            self.log.info("%s", line)
