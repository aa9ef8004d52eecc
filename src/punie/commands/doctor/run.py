"""`punie doctor`: whether all that a session needs is there, and what to do where it is not."""

from __future__ import annotations

import logging
import os
import shutil
import sys
from collections.abc import Mapping, Sequence

import anyio
from attrs import define, field

from punie.adapters.console.pipe import Pipe
from punie.bootstrap.directory_flag import directory_of
from punie.bootstrap.settings.settings import Traced, trace_settings
from punie.bootstrap.settings.trust import stored_trust
from punie.bootstrap.signals import unless_interrupted
from punie.commands.doctor import acp as doctor_acp
from punie.commands.doctor import ides as doctor_ides
from punie.commands.doctor import machine as doctor_machine
from punie.commands.doctor import model as doctor_model
from punie.commands.doctor import pipelines as doctor_pipelines
from punie.commands.doctor import servers as doctor_servers
from punie.commands.doctor import settings as doctor_settings
from punie.commands.doctor import state as doctor_state
from punie.commands.doctor.report import Check, Page, as_json, summary
from punie.commands.doctor.side_by_side import Case, Examination, Probe, on_disk, settled
from punie.commands.setup.ides import IDES
from punie.domain.errors import SettingsError
from punie.domain.values.display import one_line

EXIT_FAILED = 1
EXIT_USAGE = 2
WAIT_SHOWN_S = 1.0
"""How long a person waits before being told for what."""

PROBES: Sequence[Probe] = (
    on_disk("python", doctor_machine.interpreter),
    on_disk("punie", doctor_machine.installation),
    Probe("settings", doctor_settings.all_settings),
    on_disk("your settings", doctor_settings.your_settings),
    on_disk("project settings", doctor_settings.project_settings),
    on_disk("variables", doctor_settings.variables),
    on_disk("credentials", doctor_state.credentials),
    Probe("model", doctor_model.model, doctor_model.MODEL_LIMIT_S),
    *(on_disk(ide.key, doctor_ides.entry_in(ide)) for ide in IDES),
    on_disk("wsl", doctor_machine.wsl),
    Probe("servers", doctor_servers.servers, doctor_servers.SERVERS_LIMIT_S),
    on_disk("pipelines", doctor_pipelines.pipelines),
    on_disk("state", doctor_state.directory),
    on_disk("database", doctor_state.database),
    Probe("sessions", doctor_state.shared_sessions),
    on_disk("log", doctor_state.log),
    Probe("git", doctor_machine.git),
    Probe("sandbox", doctor_machine.sandbox),
    on_disk("ripgrep", doctor_machine.ripgrep),
    on_disk("extras", doctor_machine.extras),
    Probe("acp", doctor_acp.acp, 30.0),
)
"""In the order in which they are shown."""


@define
class DoctorMode:
    """One run of `punie doctor`; `run` gives the exit code. `watched` says that a person looks at stderr."""

    environ: Mapping[str, str]
    cwd: str
    as_json: bool
    offline: bool
    log: logging.Logger
    page: Page
    watched: bool = False
    probes: Sequence[Probe] = PROBES
    _out: Pipe = field(factory=lambda: Pipe(sys.stdout), init=False)
    _waits: bool = field(default=False, init=False)

    async def run(self) -> int:
        """Look at everything, side by side."""
        return await unless_interrupted(self._examine)

    async def _examine(self) -> int:
        traced, trouble = await self._traced()
        case = Case(self.environ, self.cwd, self.offline, self.log, traced, trouble)
        examination = Examination(case, self.probes, self._show)
        checks: list[Check] = []
        async with anyio.create_task_group() as watching:
            watching.start_soon(self._show_waiting, examination)
            checks += await examination.run()
            watching.cancel_scope.cancel()
        self._clear()
        self._out.write(as_json(checks) + "\n" if self.as_json else summary(checks))
        return 0 if all(check.ok for check in checks) else EXIT_FAILED

    async def _traced(self) -> tuple[Traced | None, Exception | None]:
        """The settings as a session here would have them; what is wrong with files is told by checks of their own."""
        trusted = stored_trust(self.environ, self.log)
        traced, error = await settled(lambda: trace_settings(self.environ, {}, self.cwd, trusted))
        return traced, None if isinstance(error, SettingsError) else error

    def _show(self, check: Check) -> None:
        if not self.as_json:
            self._clear()
            self._out.write(self.page.lines(check))

    async def _show_waiting(self, examination: Examination) -> None:
        """Tell a person every second what has not come out yet, on one line that goes away."""
        while self.watched:
            await anyio.sleep(WAIT_SHOWN_S)
            width = max((self.page.width or 80) - 12, 20)
            sys.stderr.write(f"\r\x1b[Kwaiting: {one_line(', '.join(examination.waiting), width)}")
            sys.stderr.flush()
            self._waits = True

    def _clear(self) -> None:
        if self._waits:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
            self._waits = False


def run_doctor(*, as_json: bool, cwd: str, offline: bool) -> int:
    """Look at everything; gives the exit code."""
    environ = dict(os.environ)
    directory = directory_of(cwd)
    if directory is None:
        return EXIT_USAGE
    mode = DoctorMode(environ, directory, as_json, offline, _quiet_log(environ), _page(environ), _is_watched(environ))
    return anyio.run(mode.run)


def _quiet_log(environ: Mapping[str, str]) -> logging.Logger:
    """What the checks find is said by them, and once; the log is for who asks for it."""
    log = logging.getLogger("punie")
    if environ.get("PUNIE_LOG_LEVEL", "").upper() == "DEBUG":
        from punie.bootstrap.logs import start_logging

        return start_logging(environ, None)
    log.handlers[:] = [logging.NullHandler()]
    log.propagate = False
    return log


def _page(environ: Mapping[str, str]) -> Page:
    if not sys.stdout.isatty():
        return Page()
    colour = not environ.get("NO_COLOR") and environ.get("TERM") != "dumb"
    return Page(shutil.get_terminal_size((80, 24)).columns, colour)


def _is_watched(environ: Mapping[str, str]) -> bool:
    return sys.stderr.isatty() and environ.get("TERM") != "dumb"
