"""`punie doctor`: whether all that a session needs is there, and what to do where it is not."""

from __future__ import annotations

import logging
import os
import shutil
import sys
from collections.abc import Mapping, Sequence

import anyio
from attrs import define, field

from punie.adapters.console.output import Pipe
from punie.bootstrap.settings.settings import Traced, stored_trust, trace_settings
from punie.commands.doctor import connections, machine, state
from punie.commands.doctor.examination import Case, Check, Examination, Page, Probe, as_json, on_disk, settled, summary
from punie.commands.running import EXIT_FAILED, directory_of, start_logging, unless_interrupted
from punie.commands.setup.ides import IDES
from punie.domain.errors import SettingsError
from punie.domain.values.display import one_line

WAIT_SHOWN_S = 1.0
"""How long a person waits before being told for what."""

PROBES: Sequence[Probe] = (
    on_disk("python", machine.interpreter),
    on_disk("punie", machine.installation),
    Probe("settings", state.all_settings),
    on_disk("your settings", state.your_settings),
    on_disk("project settings", state.project_settings),
    on_disk("variables", state.variables),
    on_disk("credentials", state.credentials),
    Probe("model", connections.model, connections.MODEL_LIMIT_S),
    *(on_disk(ide.key, machine.entry_in(ide)) for ide in IDES),
    on_disk("wsl", machine.wsl),
    Probe("servers", connections.servers, connections.SERVERS_LIMIT_S),
    on_disk("pipelines", connections.pipelines),
    on_disk("state", state.directory),
    on_disk("database", state.database),
    Probe("sessions", state.shared_sessions),
    on_disk("log", state.log),
    Probe("git", machine.git),
    Probe("sandbox", machine.sandbox),
    on_disk("ripgrep", machine.ripgrep),
    on_disk("extras", machine.extras),
    Probe("acp", connections.acp, 30.0),
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
    environ, directory = dict(os.environ), str(directory_of(cwd))
    mode = DoctorMode(environ, directory, as_json, offline, _quiet_log(environ), _page(environ), _is_watched(environ))
    return anyio.run(mode.run)


def _quiet_log(environ: Mapping[str, str]) -> logging.Logger:
    """What the checks find is said by them, and once; the log is for who asks for it."""
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


def _is_watched(environ: Mapping[str, str]) -> bool:
    return sys.stderr.isatty() and environ.get("TERM") != "dumb"
