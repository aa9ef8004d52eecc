"""This installation's command line, as an IDE's file names it."""

from __future__ import annotations

import importlib.metadata
import os
import sys
from collections.abc import Sequence
from pathlib import Path, PureWindowsPath

from attrs import frozen

from punie.mechanics.installation import is_fleeting

COMMAND = "acp"
"""The subcommand in an entry's arguments: the words before it start Punie, those after it are flags."""

_SCRIPTS = {"punie", "punie.exe"}
_BY_PYTHON = ("-P", "-m", "punie")
"""Without -P, Python would look for modules in the current directory, which is a project."""


@frozen
class Installation:
    """The command line of this installation: an absolute program, and the words before the subcommand."""

    program: str
    before: tuple[str, ...] = ()

    @property
    def args(self) -> tuple[str, ...]:
        """The arguments that make the program an ACP agent."""
        return (*self.before, COMMAND)

    @property
    def is_fleeting(self) -> bool:
        """Whether the program is in a cache that may be cleared."""
        return is_fleeting(self.program)

    def starts(self, program: str, args: Sequence[str]) -> bool:
        """Whether that command line starts this installation as an agent, also through a link."""
        if COMMAND not in args:
            return False
        if self._is_python(program):
            return tuple(args[: args.index(COMMAND)]) in {_BY_PYTHON, _BY_PYTHON[1:]}
        script = own_script()
        return script is not None and args[0] == COMMAND and _is_same(program, script)

    def _is_python(self, program: str) -> bool:
        # Links are not followed: environments of one Python share its program.
        return os.path.normcase(os.path.normpath(program)) == os.path.normcase(os.path.normpath(sys.executable))


def is_punie(program: str, args: Sequence[str]) -> bool:
    """Whether that command line starts Punie as an agent: this installation or another, which may be gone by now."""
    if COMMAND not in args:
        return False
    before = tuple(args[: args.index(COMMAND)])
    return before[-2:] == _BY_PYTHON[1:] or (not before and PureWindowsPath(program).name.casefold() in _SCRIPTS)


def this_installation() -> Installation:
    """The console script of this installation, else its Python with `-m punie`."""
    script = own_script()
    return Installation(sys.executable, _BY_PYTHON) if script is None else Installation(script)


def own_script() -> str | None:
    """The absolute path of the console script of this installation; None where there is none."""
    try:
        files = importlib.metadata.distribution("punie").files or ()
    except importlib.metadata.PackageNotFoundError:
        return None
    for file in files:
        if file.name in _SCRIPTS:
            path = os.path.normpath(os.path.abspath(str(file.locate())))  # noqa: PTH100 - a link stays what it is
            if runs(path):
                return path
    return None


def runs(program: str) -> bool:
    """Whether that is an absolute path to a program that this user may run."""
    try:
        return Path(program).is_absolute() and Path(program).is_file() and os.access(program, os.X_OK)
    except (OSError, ValueError):
        return False


def _is_same(one: str, other: str) -> bool:
    try:
        return os.path.samefile(one, other)  # noqa: PTH121 - a text that is no path is allowed
    except (OSError, ValueError):
        return False
