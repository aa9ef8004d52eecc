"""A pipeline as a tool of a session."""

from __future__ import annotations

import logging

from attrs import field, frozen

from punie.application.pipelines.run import PipelineRun
from punie.application.tools.composition import Composition
from punie.application.tools.session_tool import CallContext, PreparedCall, SessionTool, only_in_a_turn
from punie.domain.pipelines.pipeline import Pipeline
from punie.domain.tools.tool import ToolDescriptor, ToolResult
from punie.domain.values.display import one_line
from punie.domain.values.json_value import JsonObject
from punie.ports.tools import CallProgress, Expressions


@frozen
class ComposedTool(SessionTool):
    """Has no effect by itself: each step is a call of its own, which asks for itself."""

    pipeline: Pipeline
    expressions: Expressions
    log: logging.Logger
    _descriptor: ToolDescriptor = field(init=False)

    def __attrs_post_init__(self) -> None:
        object.__setattr__(self, "_descriptor", self.pipeline.descriptor)

    @property
    def descriptor(self) -> ToolDescriptor:
        return self._descriptor

    def title(self, arguments: JsonObject) -> str:
        given = ", ".join(f"{name}={value}" for name, value in arguments.items() if isinstance(value, (str, int)))
        return one_line(f"Running {self.pipeline.name}{f' ({given})' if given else ''}")

    def denial(self, arguments: JsonObject) -> str:
        return f"Permission denied to run {self.pipeline.name}"

    def paths(self, arguments: JsonObject) -> tuple[str, ...]:
        return ()

    async def prepare(self, arguments: JsonObject, context: CallContext) -> PreparedCall:
        async def composed(calls: Composition, progress: CallProgress) -> ToolResult:
            return await PipelineRun(self.pipeline, calls, self.expressions, progress, self.log).run(arguments)

        return PreparedCall(only_in_a_turn, composed=composed)
