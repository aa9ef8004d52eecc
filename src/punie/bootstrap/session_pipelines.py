"""The composed tools of one session: its pipelines, and code mode where the settings switch it on."""

from __future__ import annotations

import logging
from importlib.util import find_spec
from typing import TYPE_CHECKING

import anyio.to_thread
from attrs import define, field

from punie.application.tools.session_tool import SessionTool
from punie.bootstrap.settings.keys import CODE_MODE, SHIPPED_PIPELINES
from punie.bootstrap.settings.settings import Settings
from punie.domain.session.session import SessionSpec

if TYPE_CHECKING:
    from punie.application.pipelines.composed_tool import PipelineTools
    from punie.application.tools.session.run_code import RunCode
    from punie.domain.pipelines.pipeline import Pipeline

NO_MONTY = "tools.code_mode is on, but run_code needs a sandbox that is not installed. Switch it off, or install it: %s"


@define
class ComposedTools:
    """The last of a session's tools, made of the others; lives as long as the session.

    The files are read once, when the tools are listed first. A session that `has_pipelines` loads the modules for them.
    """

    spec: SessionSpec
    settings: Settings
    log: logging.Logger
    has_pipelines: bool = False
    _pipelines: PipelineTools | None = field(default=None, init=False)
    _run_code: RunCode | None = field(default=None, init=False)
    _looked: bool = field(default=False, init=False)

    async def __call__(self, others: tuple[SessionTool, ...]) -> tuple[SessionTool, ...]:
        """The pipelines, and `run_code`, whose programs may call the pipelines too."""
        if not self._looked:
            self._looked = True
            if self.has_pipelines:
                self._pipelines = _pipelines_of(self.spec.cwd, self.settings, self.log)
            if self.settings[CODE_MODE]:
                self._run_code = _program_tool(self.log)
        pipelines = () if self._pipelines is None else await self._pipelines(others)
        if self._run_code is None:
            return pipelines
        self._run_code.reach.tools = {tool.descriptor.name: tool.descriptor for tool in (*pipelines, *others)}
        return (*pipelines, self._run_code)


def _pipelines_of(cwd: str, settings: Settings, log: logging.Logger) -> PipelineTools:
    from punie.adapters.expressions.python_expressions import PythonExpressions
    from punie.application.pipelines.composed_tool import PipelineTools
    from punie.bootstrap.pipeline_files import log_problems, offered_shelf

    def read() -> tuple[Pipeline, ...]:
        return log_problems(offered_shelf(settings.pipelines_folder, cwd, settings[SHIPPED_PIPELINES]), log)

    async def load() -> tuple[Pipeline, ...]:
        return await anyio.to_thread.run_sync(read)

    return PipelineTools(load, PythonExpressions(), log)


def _program_tool(log: logging.Logger) -> RunCode | None:
    """The tool `run_code`; None, with a line in the log, where the sandbox is not installed."""
    if find_spec("pydantic_monty") is None:
        from punie.mechanics.installation import install_line

        log.warning(NO_MONTY, install_line("code"))
        return None
    from punie.adapters.monty.sandbox import MontySandbox
    from punie.application.tools.session.run_code import RunCode, ToolsInReach

    return RunCode(MontySandbox(), ToolsInReach())
