"""`punie doctor`: checks of all that a session needs, and what to do where a check fails."""

from __future__ import annotations

import logging
import os
import shutil
import sys
from collections.abc import Mapping, Sequence

import anyio
from attrs import define

from punie.bootstrap.settings.sources import Traced, stored_trust, trace_settings
from punie.commands.doctor import connections, machine, state, tool_calls
from punie.commands.doctor.examination import Case, Check, Examination, Page, Probe, as_json, on_disk, settled, summary
from punie.commands.running import Exit, directory_of, start_logging, told, unless_interrupted, waiting
from punie.commands.setup.ides import IDES
from punie.domain.errors import SettingsError
from punie.domain.values.display import one_line

PROBES: Sequence[Probe] = (
    on_disk("python", machine.interpreter),
    on_disk("punie", machine.installation),
    Probe("settings", state.all_settings),
    on_disk("managed settings", machine.managed),
    on_disk("your settings", state.your_settings),
    on_disk("project settings", state.project_settings),
    on_disk("variables", state.variables),
    on_disk("credentials", state.credentials),
    Probe("model", connections.model, connections.MODEL_LIMIT_S),
    Probe("model tool", tool_calls.model_tool, tool_calls.MODEL_CALL_S + 20),
    *(on_disk(ide.key, machine.entry_in(ide)) for ide in IDES),
    Probe("ide tool", tool_calls.ide_tool, tool_calls.IDE_S + 5),
    on_disk("wsl", machine.wsl),
    Probe("servers", connections.servers, connections.SERVERS_LIMIT_S),
    on_disk("pipelines", connections.pipelines),
    on_disk("hooks", state.hooks),
    Probe("web", connections.web, connections.MODEL_LIMIT_S),
    on_disk("state", state.directory),
    on_disk("database", state.database),
    Probe("sessions", state.shared_sessions),
    Probe("budgets", state.budgets),
    on_disk("turns", state.turns),
    on_disk("history", state.history),
    on_disk("log", state.log),
    Probe("git", machine.git),
    Probe("sandbox", machine.sandbox),
    on_disk("ripgrep", machine.ripgrep),
    on_disk("extras", machine.installed_extras),
    Probe("acp", connections.acp, 30.0),
)
"""In the order in which they are shown."""


@define
class DoctorMode:
    """One run of `punie doctor`. `watched`: a person looks at stderr."""

    environ: Mapping[str, str]
    cwd: str
    as_json: bool
    offline: bool
    log: logging.Logger
    page: Page
    watched: bool = False
    probes: Sequence[Probe] = PROBES
    call_tool: bool = False

    async def run(self) -> int:
        """Run all checks, side by side; returns the exit code."""
        return await unless_interrupted(self._examine)

    async def _examine(self) -> int:
        traced, trouble = await self._traced()
        case = Case(self.environ, self.cwd, self.offline, self.log, traced, trouble, self.call_tool)

        def show(check: Check) -> None:
            if not self.as_json:
                clear()
                sys.stdout.write(self.page.lines(check))

        examination = Examination(case, self.probes, show)
        width = max((self.page.width or 80) - 12, 20)
        async with waiting(
            lambda: f"waiting: {one_line(', '.join(examination.waiting), width)}", watched=self.watched
        ) as clear:
            checks = await examination.run()
        code = Exit.DONE if all(check.ok for check in checks) else Exit.FAILED
        return told(as_json(checks), summary(checks), as_json=self.as_json, exit_code=code)

    async def _traced(self) -> tuple[Traced | None, Exception | None]:
        """The settings as a session here would have them; problems of files have checks of their own."""
        trusted = stored_trust(self.environ, self.log)
        traced, error = await settled(lambda: trace_settings(self.environ, {}, self.cwd, trusted))
        return traced, None if isinstance(error, SettingsError) else error


def run_doctor(*, as_json: bool, cwd: str, offline: bool, call_tool: bool) -> int:
    """Run `punie doctor`; returns the exit code."""
    environ, directory = dict(os.environ), str(directory_of(cwd))
    watched = sys.stderr.isatty() and environ.get("TERM") != "dumb"
    log, page = _quiet_log(environ), _page(environ)
    mode = DoctorMode(environ, directory, as_json, offline, log, page, watched, call_tool=call_tool)
    return anyio.run(mode.run)


def _quiet_log(environ: Mapping[str, str]) -> logging.Logger:
    """A log without output unless `PUNIE_LOG_LEVEL` is DEBUG, since the checks say what they find."""
    log = logging.getLogger("punie")
    if environ.get("PUNIE_LOG_LEVEL", "").upper() == "DEBUG":
        return start_logging(environ, None)
    log.handlers[:] = [logging.NullHandler()]
    log.propagate = False
    return log


def _page(environ: Mapping[str, str]) -> Page:
    if not sys.stdout.isatty():
        return Page()
    colour = not environ.get("NO_COLOR") and environ.get("TERM") != "dumb"
    return Page(shutil.get_terminal_size((80, 24)).columns, colour)
