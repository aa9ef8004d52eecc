"""Review of command lines: parse the line, analyse what would run, and follow the paths."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import PurePath, PurePosixPath

from attrs import evolve, frozen

from punie.domain.values.paths import Location
from punie.domain.values.terminal import Command
from punie.ports.workspace import PathGuard
from shellsight.report import CommandPart, CommandReport, PathUse, Standing
from shellsight.surroundings import ShellParser

_log = logging.getLogger("punie.permissions")

SHELL = ("/bin/sh", "-c")
"""How a shell line is run (`docs/interfaces.md`)."""


@frozen
class CommandReview:
    """Reports what commands would do; lives as long as the session. `home` is the absolute home directory."""

    parser: ShellParser
    guard: PathGuard
    home: str

    async def report(self, command: Command) -> CommandReport:
        """The report on a command, with the places that its paths lead to. Never raises."""
        report = read_command(command, self.parser, self.home)
        return with_places(report, {path: await self.guard.locate(path) for path in paths_to_follow(report)})


def read_command(command: Command, parser: ShellParser, home: str) -> CommandReport:
    """The report on a command, by its words alone; no path is followed. Never raises.

    A line on which the analysis fails counts as not understood, and the failure is logged.
    """
    try:
        return _worked_out(command, parser, home)
    except Exception:  # noqa: BLE001 - a fault in the analysis ends in a question
        _log.exception("a command line could not be worked out")
        words = (command.program, *command.args)
        fault = CommandPart(words, Standing.UNKNOWN, "Punie could not work it out", literal=False)
        return CommandReport(command.line, (fault,))


def _worked_out(command: Command, parser: ShellParser, home: str) -> CommandReport:
    # Imported here: 1.6 MB that a session without commands does not need.
    from shellsight.analysis import analyse, analyse_argv
    from shellsight.surroundings import Surroundings

    surroundings = Surroundings(command.cwd, home, parser.parse)
    words = (command.program, *command.args)
    if words[:-1] != SHELL:
        return evolve(analyse_argv(words, surroundings), line=command.line)
    return evolve(analyse(parser.parse(words[-1]), surroundings), line=command.line)


def paths_to_follow(report: CommandReport) -> tuple[str, ...]:
    """The absolute paths of the report, each once; a path that is not known stays as written and is not followed."""
    return tuple(path for path in dict.fromkeys(use.path for use in report.paths) if _is_absolute(path))


_POSIX = isinstance(PurePath(), PurePosixPath)


def _is_absolute(path: str) -> bool:
    return path.startswith("/") if _POSIX else PurePath(path).is_absolute()


def with_places(report: CommandReport, places: Mapping[str, Location]) -> CommandReport:
    """The report with the places that its paths lead to; the place of any other path is unknown."""
    return evolve(report, parts=tuple(_with_places(part, places) for part in report.parts))


def _with_places(part: CommandPart, places: Mapping[str, Location]) -> CommandPart:
    if not part.paths:
        return part
    paths = tuple(PathUse(use.path, use.effect, use.below, places.get(use.path)) for use in part.paths)
    return evolve(part, paths=paths)
