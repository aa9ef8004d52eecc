"""Which Punie this is: the command line that starts this very installation, and whether another one does."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from attrs import frozen

from punie.commands.setup.ide_entry import COMMAND

_SCRIPTS = {"punie", "punie.exe"}
_FLEETING = ("/archive-v0/", "/builds-v0/", "/environments-v2/", "/pipx/.cache/", "/.cache/pipx/")
"""Parts of the paths where `uvx` and `pipx run` keep what they made for one run."""

_BY_PYTHON = ("-P", "-m", "punie")
"""Without -P Python would look for modules in the directory that it is started in, which is somebody's project."""


@frozen
class Installation:
    """How this installation is started: an absolute program, and what stands before our own arguments."""

    program: str
    before: tuple[str, ...] = ()

    @property
    def args(self) -> tuple[str, ...]:
        """The arguments that make the program an ACP agent."""
        return (*self.before, COMMAND)

    @property
    def is_fleeting(self) -> bool:
        """Whether it lies in a cache that its maker clears some day."""
        return any(part in self.program.replace(os.sep, "/") for part in _FLEETING)

    def starts(self, program: str, args: Sequence[str]) -> bool:
        """Whether that command line starts this installation as an agent, also through a link."""
        if COMMAND not in args:
            return False
        if self._is_python(program):
            return tuple(args[: args.index(COMMAND)]) in {_BY_PYTHON, _BY_PYTHON[1:]}
        script = own_script()
        return script is not None and args[0] == COMMAND and _is_same(program, script)

    def _is_python(self, program: str) -> bool:
        # Through no link: environments of one Python share its program.
        return os.path.normcase(os.path.normpath(program)) == os.path.normcase(os.path.normpath(sys.executable))


def this_installation() -> Installation:
    """The console script of this installation; where it has none, its Python with `-m punie`."""
    script = own_script()
    return Installation(sys.executable, _BY_PYTHON) if script is None else Installation(script)


def own_script() -> str | None:
    """The console script that was installed with this package, absolute; None where there is none."""
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
    """Whether there is a program of that absolute path that this user may run."""
    try:
        return Path(program).is_absolute() and Path(program).is_file() and os.access(program, os.X_OK)
    except (OSError, ValueError):
        return False


def is_wsl(environ: Mapping[str, str]) -> bool:
    """Whether this is Linux inside Windows."""
    return "WSL_DISTRO_NAME" in environ or "microsoft" in platform.release().casefold()


def _is_same(one: str, other: str) -> bool:
    try:
        return os.path.samefile(one, other)  # noqa: PTH121 - one of them may be no path at all
    except (OSError, ValueError):
        return False
