"""The checks of one project, run by the programs that it has itself."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import anyio.to_thread

from punie.domain.errors import ToolFailedError
from punie.domain.tools.checks import PROGRAMS, Check, PlannedCheck, ProblemReport, TestReport
from punie.domain.values.paths import is_inside, shown_path
from punie.domain.values.terminal import Command, ExitStatus, TerminalOutput
from punie.ports.tools import PythonChecks

REPORT_LIMIT_BYTES = 16_777_216
"""Bytes kept of a program's output: a larger report is refused, not read in part."""

_OPTIONS: dict[str, tuple[str, ...]] = {
    "ruff": ("check", "--no-fix", "--output-format", "json"),
    "ty": ("check", "--output-format", "gitlab"),
    "basedpyright": ("--outputjson",),
    "pyright": ("--outputjson",),
    "mypy": ("--no-error-summary", "--output", "json"),
    # xunit1 is the family with file and line; the report goes into the output, so that no file is left behind.
    "pytest": ("-q", "-o", "junit_family=xunit1", "--junitxml=/dev/stdout"),
}

TOOLS = dict(PROGRAMS)

_NEEDS_A_PATH = frozenset({"mypy"})
_PLAIN_FIRST = "._/"


def _found(cwd: str, tools: tuple[str, ...], *, own: bool = True) -> Iterator[tuple[str, str]]:
    venv = os.path.join(cwd, ".venv", "bin")  # noqa: PTH118 - a session that opens looks several times, and Path is slow
    for place in ((venv,), (sys.executable.rpartition(os.sep)[0],), os.get_exec_path()):
        folders = os.pathsep.join(
            folder
            for folder in filter(os.path.isdir, place)
            if own or not is_inside(str(Path(folder).absolute()), (cwd,))
        )
        for tool in tools if folders else ():
            program = shutil.which(tool, path=folders)
            if program is not None:
                yield tool, str(Path(program).absolute())


def is_found(cwd: str, dependency: str) -> bool:
    """Whether a check of the project in `cwd` would find one of these programs (`project:NAME|NAME`)."""
    return any(True for _ in _found(cwd, tuple(dependency.removeprefix("project:").split("|"))))


def _path_words(tool: str, paths: Sequence[str]) -> tuple[str, ...]:
    if not paths:
        return (".",) if tool in _NEEDS_A_PATH else ()
    # Another first character could make the path an option, or a file that arguments are read from (@).
    return tuple(path if path[:1].isalnum() or path[:1] in {*_PLAIN_FIRST} else f"./{path}" for path in paths)


TAIL_CHARS = 3_000
"""Characters shown of the end of an output that is no report."""


class ProjectChecks(PythonChecks):
    """Ruff, a type checker and pytest of one directory, and their reports; lives as long as the session."""

    def __init__(self, cwd: str) -> None:
        """`cwd` is absolute; nothing is looked for yet."""
        self._cwd = cwd

    def plan(
        self, check: Check, paths: Sequence[str], options: Sequence[str] = (), *, own: bool = True
    ) -> PlannedCheck:
        """The project's `.venv` is searched first, then the folder of this Python, then PATH."""
        found = next(_found(self._cwd, TOOLS[check], own=own), None)
        if found is None:
            names = " or ".join(TOOLS[check])
            raise ToolFailedError(
                f"{names} is not installed: it is neither in {self._cwd}/.venv/bin nor on PATH. "
                f"Install it in the project's environment (such as: .venv/bin/python -m pip install {TOOLS[check][0]})."
            )
        tool, program = found
        usual = (word for word in _OPTIONS[tool] if word != "--no-fix" or "--fix" not in options)
        words = (*usual, *options, *_path_words(tool, paths))
        line = shlex.join((shown_path(program, self._cwd), *words))
        return PlannedCheck(check, tool, Command(program, words, self._cwd, line, REPORT_LIMIT_BYTES))

    async def read(
        self, planned: PlannedCheck, output: TerminalOutput, ended: ExitStatus
    ) -> ProblemReport | TestReport:
        return await anyio.to_thread.run_sync(_read, planned, output, ended)


def _read(planned: PlannedCheck, output: TerminalOutput, ended: ExitStatus) -> ProblemReport | TestReport:
    from punie.adapters.checks.reports import ReportError, read_problems, read_tests  # loaded by the first check

    if ended.signal is not None:
        problem = str(ended)
    elif output.truncated and planned.check is not Check.TESTS:
        limit = planned.command.output_limit_bytes
        problem = f"it printed more than {limit} bytes, or than the terminal keeps; name a smaller path"
    else:
        try:
            if planned.check is Check.TESTS:
                return read_tests(output.text, ended.exit_code)
            return read_problems(planned.tool, output.text, ended.exit_code)
        except ReportError as error:
            problem = str(error)
        except (KeyError, TypeError, AttributeError, OverflowError) as error:
            problem = f"its report has another form than expected ({error!r})"
    raise ToolFailedError(
        f"{planned.tool} gave no result that can be used: {problem}. Its output ends with:\n"
        f"{output.text[-TAIL_CHARS:].strip() or '(nothing)'}\n[{ended}]"
    )
