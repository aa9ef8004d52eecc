"""The composed tools of one session: its pipelines, and code mode where the settings switch it on."""

from __future__ import annotations

import logging
from importlib.util import find_spec
from pathlib import Path

import anyio.to_thread
from attrs import define, field

from punie.adapters.expressions.python_expressions import PythonExpressions
from punie.application.pipelines.offered import PipelineTools
from punie.application.pipelines.run_code import RunCode, ToolsInReach
from punie.application.session_tool import SessionTool
from punie.bootstrap.settings import Settings
from punie.bootstrap.settings_files import IN_PROJECT
from punie.domain.pipeline import Pipeline
from punie.domain.session import SessionSpec

NO_MONTY = (
    "tools.code_mode is on, but the sandbox that it needs is not installed, so run_code is not offered: "
    "install punie[code], or switch the setting off"
)


@define
class ComposedTools:
    """What comes last among a session's tools, made of the others; lives as long as the session."""

    pipelines: PipelineTools
    code_mode: bool
    log: logging.Logger
    _reach: ToolsInReach = field(factory=ToolsInReach, init=False)
    _run_code: RunCode | None = field(default=None, init=False)

    async def __call__(self, others: tuple[SessionTool, ...]) -> tuple[SessionTool, ...]:
        """The pipelines, and run_code, which reaches them too."""
        pipelines = await self.pipelines(others)
        if not self.code_mode or not self._ready():
            return pipelines
        self._reach.tools = {tool.descriptor.name: tool.descriptor for tool in (*pipelines, *others)}
        return (*pipelines, *(() if self._run_code is None else (self._run_code,)))

    def _ready(self) -> bool:
        if self._run_code is None and find_spec("pydantic_monty") is not None:
            from punie.adapters.monty.sandbox import MontySandbox

            self._run_code = RunCode(MontySandbox(), self._reach)
        elif self._run_code is None:
            self.log.warning(NO_MONTY)
            self.code_mode = False
        return self._run_code is not None


def composed_tools_of(spec: SessionSpec, settings: Settings, log: logging.Logger) -> ComposedTools:
    """Those that a session there has; the files are read once, when its tools are listed first."""

    async def load() -> tuple[Pipeline, ...]:
        return await anyio.to_thread.run_sync(_read, spec.cwd, settings, log)

    return ComposedTools(PipelineTools(load, PythonExpressions(), log), settings.code_mode, log)


def _read(cwd: str, settings: Settings, log: logging.Logger) -> tuple[Pipeline, ...]:
    """What is offered, in a session where anything can be: most have none, and load nothing for it."""
    folders = (settings.pipelines_folder, str(Path(cwd).joinpath(*IN_PROJECT)))
    if not settings.shipped_pipelines and not any(folder is not None and Path(folder).is_dir() for folder in folders):
        return ()
    from punie.bootstrap.pipeline_files import log_problems, offered_shelf

    return log_problems(offered_shelf(settings.pipelines_folder, cwd, settings.shipped_pipelines), log)
