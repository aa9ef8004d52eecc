"""A box around local commands: bubblewrap, where the settings ask for it.

Inside, the whole machine can be read but for the user's secrets, only the session's directories and a `/tmp` of the
command's own can be written, no other process is seen, and there is no network unless it was asked for.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator

from attrs import evolve, field, frozen

from punie.domain.errors import ToolFailedError
from punie.domain.values.terminal import Command
from shellsight.secret_names import SECRET_FOLDERS

PROGRAM = "bwrap"

HIDDEN_FILES = (".netrc", ".git-credentials", ".pypirc", ".npmrc", ".pgpass")
"""Files below the user's home that hold passwords; `SECRET_FOLDERS` are hidden as well."""

READ_ONLY_IN_ROOTS = (".punie", ".mcp.json", ".git/hooks", ".git/config")
"""What decides over later commands: a boxed command may read it, and not change it."""


@frozen
class Bubblewrap:
    """Puts commands into a box; stateless, lives as long as its session.

    `hidden` are further absolute paths that programs inside may not see: Punie's own state. A command is refused where
    the program is missing, never run without the box.
    """

    roots: tuple[str, ...]
    home: str
    hidden: tuple[str, ...] = ()
    network: bool = False
    find: Callable[[str], str | None] = field(default=shutil.which)

    def around(self, command: Command) -> Command:
        """The command in its box. Raises `ToolFailedError` where there is no bubblewrap."""
        program = self.find(PROGRAM)
        if program is None:
            raise ToolFailedError(
                "The settings ask for a sandbox (permissions.sandbox), and bubblewrap (bwrap) is not installed, so "
                "nothing was run. Ask the user to install bubblewrap, or to take the setting out."
            )
        return evolve(command, program=program, args=(*self._options(command.cwd), command.program, *command.args))

    def _options(self, cwd: str) -> Iterator[str]:
        yield from ("--die-with-parent", "--new-session", "--unshare-pid", "--unshare-ipc", "--unshare-uts")
        if not self.network:
            yield "--unshare-net"
        yield from ("--cap-drop", "ALL", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp")  # noqa: S108 - the box's own
        for root in self.roots:
            yield from ("--bind", root, root)
            for name in READ_ONLY_IN_ROOTS:
                path = f"{root.rstrip('/')}/{name}"
                yield from ("--ro-bind-try", path, path)
        yield from self._secrets()
        yield from ("--chdir", cwd, "--")

    def _secrets(self) -> Iterator[str]:
        """Empty what must not be read; below the roots too, for there are homes that are a project."""
        secret = (f"{self.home}/{name}" for name in (*sorted(SECRET_FOLDERS), *HIDDEN_FILES))
        for path in (*secret, *self.hidden):
            if os.path.isdir(path):
                yield from ("--tmpfs", path)
            elif os.path.isfile(path):
                yield from ("--ro-bind", os.devnull, path)
