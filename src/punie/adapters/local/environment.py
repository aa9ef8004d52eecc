"""Programs of this machine: which are installed, and the sandbox bubblewrap around them.

The sandbox is there where the settings ask for it: inside, the whole machine can be read but for the user's secrets,
only the session's directories and a `/tmp` of the command's own can be written, no other process is seen, and there is
no network unless it was asked for.
"""

from __future__ import annotations

import importlib.util
import shutil
from collections.abc import Callable

from attrs import evolve, field, frozen

from landbox.bubblewrap import options
from punie.domain.errors import ToolFailedError
from punie.domain.values.terminal import Box, Command
from shellsight.secret_names import SECRET_FOLDERS


def is_installed(dependency: str) -> bool:
    """Whether a program is on PATH, or, for `python:MODULE`, whether its top package can be imported here.

    Nothing is run or imported: finding a submodule would import its parents.
    """
    module = dependency.removeprefix("python:")
    if module == dependency:
        return shutil.which(dependency) is not None
    try:
        return importlib.util.find_spec(module.partition(".")[0]) is not None
    except (ValueError, ImportError):
        return False


PROGRAM = "bwrap"

HIDDEN_FILES = (".netrc", ".git-credentials", ".pypirc", ".npmrc", ".pgpass")
"""Files below the user's home that hold passwords; a sandbox hides them and the `SECRET_FOLDERS`."""

READ_ONLY_IN_ROOTS = (".punie", ".mcp.json", ".git/hooks", ".git/config")
"""Files that decide over later commands: a command in a sandbox can read them and not change them."""


@frozen
class Bubblewrap:
    """The sandbox around commands; stateless, lives as long as its session.

    `hidden` are further absolute paths that programs inside cannot see: Punie's own state. Where bubblewrap is missing
    a command is refused, never run without the sandbox.
    """

    roots: tuple[str, ...]
    home: str
    hidden: tuple[str, ...] = ()
    network: bool = False
    find: Callable[[str], str | None] = field(default=shutil.which)

    def around(self, command: Command) -> Command:
        """The command in its sandbox. Raises `ToolFailedError` where there is no bubblewrap."""
        program = self.find(PROGRAM)
        if program is None:
            raise ToolFailedError(
                "The settings ask for a sandbox (permissions.sandbox), and bubblewrap (bwrap) is not installed, so "
                "nothing was run. Ask the user to install bubblewrap, or to take the setting out."
            )
        secret = (f"{self.home}/{name}" for name in (*sorted(SECRET_FOLDERS), *HIDDEN_FILES))
        words = options(
            self.roots,
            command.cwd,
            read_only=READ_ONLY_IN_ROOTS,
            hidden=(*secret, *self.hidden),
            network=self.network,
            looks=command.confinement.box is Box.LOOK,
        )
        return evolve(command, program=program, args=(*words, command.program, *command.args))
