"""The checks of `punie doctor`: run side by side, each in bounded time, and reported as lines or as JSON.

A check that raises is reported as one that failed.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TypeAlias, TypeVar, cast

import anyio
from attrs import define, field, frozen

from punie.adapters.console.output import wrapped
from punie.bootstrap.settings.sources import Traced
from punie.domain.errors import PunieError
from punie.domain.values.display import one_line
from punie.mechanics.warm_up import WarmUp

LONGEST = 2_000
_LABELS = {True: "ok", False: "FAIL"}
_COLOURS = {True: "32", False: "31"}
_INDENT = " " * 6


@frozen
class Check:
    """The result of one check. `fix` says what to do where the check failed.

    A missing optional part is ok, and `detail` mentions it.
    """

    name: str
    detail: str
    fix: str | None = None

    @property
    def ok(self) -> bool:
        """Whether nothing has to be done."""
        return self.fix is None


@frozen
class Page:
    """The form of the output: lines wrapped to `width` columns (None: not wrapped), in colour or not."""

    width: int | None = None
    colour: bool = False

    def lines(self, check: Check) -> str:
        """The lines of a check, with its fix where the check failed."""
        label = _LABELS[check.ok].ljust(len(_INDENT) - 2)
        if self.colour:
            label = f"\x1b[{_COLOURS[check.ok]}m{label}\x1b[0m"
        said = self._wrapped(f"{label}  ", f"{one_line(check.name)}: {one_line(check.detail, LONGEST)}")
        if check.fix is None:
            return said
        return said + self._wrapped(_INDENT, f"fix: {one_line(check.fix, LONGEST)}")

    def _wrapped(self, head: str, text: str) -> str:
        if self.width is None:
            return f"{head}{text}\n"
        lines = wrapped(text, max(self.width - len(_INDENT), 20))
        return "".join(f"{_INDENT if number else head}{line}\n" for number, line in enumerate(lines))


def summary(checks: Sequence[Check]) -> str:
    """The last line."""
    failed = [check.name for check in checks if not check.ok]
    if not failed:
        return f"All {len(checks)} checks passed.\n"
    return f"{len(failed)} of {len(checks)} checks failed: {', '.join(one_line(name) for name in failed)}.\n"


def as_json(checks: Sequence[Check]) -> dict[str, object]:
    """All checks as `punie doctor --json` prints them."""
    rows = [{"name": check.name, "ok": check.ok, "detail": check.detail, "fix": check.fix} for check in checks]
    return {"ok": all(check.ok for check in checks), "checks": rows}


T = TypeVar("T")

LIMIT_S = 15.0


@frozen
class Case:
    """The input of the checks: this machine, as a session in `cwd` (absolute) would find it.

    `traced` is None where the settings do not load; `trouble` is then the error, unless the checks of the files report
    it. `offline`: no request over a network is allowed. `call_tool`: the model may be asked to call a tool.
    """

    environ: Mapping[str, str]
    cwd: str
    offline: bool
    log: logging.Logger
    traced: Traced | None
    trouble: Exception | None = None
    call_tool: bool = False


Look: TypeAlias = Callable[[Case], Awaitable[Sequence[Check]]]


@frozen
class Probe:
    """One function that makes one check or several. `name` is shown to a person who waits."""

    name: str
    look: Look
    limit_s: float = LIMIT_S


def on_disk(name: str, look: Callable[[Case], Sequence[Check]], limit_s: float = LIMIT_S) -> Probe:
    """A probe whose function blocks; it runs in a thread that does not delay the exit, since a disk may hang."""

    async def looking(case: Case) -> Sequence[Check]:
        return cast("Sequence[Check]", await WarmUp({name: functools.partial(look, case)}).result(name))

    return Probe(name, looking, limit_s)


async def settled(work: Callable[[], T]) -> tuple[T | None, Exception | None]:
    """The result of blocking work, or its error; the work runs in a thread, in bounded time."""
    try:
        with anyio.fail_after(LIMIT_S):
            return cast("T", await WarmUp({"work": work}).result("work")), None
    except Exception as error:  # noqa: BLE001 - a check reports the error
        return None, error


@define
class Examination:
    """One run of all probes; `shown` is called with each check as soon as possible, in the order of the probes."""

    case: Case
    probes: Sequence[Probe]
    shown: Callable[[Check], None]
    _found: dict[int, Sequence[Check]] = field(factory=dict[int, "Sequence[Check]"], init=False)
    _told: int = field(default=0, init=False)

    @property
    def waiting(self) -> list[str]:
        """The names of the probes that have not finished."""
        return [probe.name for number, probe in enumerate(self.probes) if number not in self._found]

    async def run(self) -> list[Check]:
        """Run all probes; returns their checks, in the order of the probes."""
        async with anyio.create_task_group() as tasks:
            for number in range(len(self.probes)):
                tasks.start_soon(self._examine, number)
        return [check for number in range(len(self.probes)) for check in self._found[number]]

    async def _examine(self, number: int) -> None:
        self._found[number] = await _examined(self.probes[number], self.case)
        while self._told in self._found:
            for check in self._found[self._told]:
                self.shown(check)
            self._told += 1


async def _examined(probe: Probe, case: Case) -> Sequence[Check]:
    try:
        with anyio.fail_after(probe.limit_s):
            return await probe.look(case)
    except TimeoutError:
        detail = f"no answer within {probe.limit_s:g} seconds"
        return [Check(probe.name, detail, fix="See what holds it up, and run punie doctor again.")]
    except PunieError as error:
        return [Check(probe.name, str(error), fix="Mend that, and run punie doctor again.")]
    except Exception as error:
        case.log.debug("doctor: %s", probe.name, exc_info=True)
        detail = f"the check itself broke ({type(error).__name__}: {error})"
        fix = "This is a fault of Punie: PUNIE_LOG_LEVEL=DEBUG punie doctor shows where. Please report it."
        return [Check(probe.name, detail, fix)]
