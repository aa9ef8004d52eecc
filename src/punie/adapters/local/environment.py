"""Programs of this machine: which are installed, the environment that they receive, and a sandbox around them.

The variables are an allow-list, so that no command receives a provider's key or token, PUNIE_*, or the address of the
SSH agent. A command that needs more sets it itself, where the person who is asked can see it. The sandbox is
bubblewrap, where the settings ask for it: inside, the whole machine can be read but for the user's secrets, only the
session's directories and a `/tmp` of the command's own can be written, no other process is seen, and there is no
network unless it was asked for.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
from collections.abc import Callable, Iterator, Mapping

from attrs import evolve, field, frozen

from punie.domain.errors import ToolFailedError
from punie.domain.values.terminal import Box, Command
from shellsight.secret_names import SECRET_FOLDERS

NAMES = frozenset({
    "PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TMPDIR", "TEMP", "TMP",
    "VIRTUAL_ENV", "CONDA_PREFIX", "CONDA_DEFAULT_ENV", "PYENV_ROOT", "PYENV_VERSION",
    "NVM_DIR", "NODE_PATH", "PNPM_HOME", "VOLTA_HOME", "JAVA_HOME", "ANDROID_HOME", "DOTNET_ROOT",
    "GOPATH", "GOROOT", "GOMODCACHE", "GOCACHE", "CARGO_HOME", "RUSTUP_HOME",
    "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR",
    "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "LD_LIBRARY_PATH", "NO_COLOR",
})  # fmt: skip
"""Places of programs, tool chains and caches, and a person's language, time zone and colours."""

PREFIXES = ("LC_", "PYTHON")
PROXIES = frozenset({"http_proxy", "https_proxy", "all_proxy", "no_proxy"})
_SECRET_ENDINGS = ("KEY", "KEYS", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIALS")


def child_environment(ours: Mapping[str, str]) -> dict[str, str]:
    """The variables of `ours` that a child receives, and a terminal type without colours and cursor."""
    return {name: value for name, value in ours.items() if _passes(name, value)} | {"TERM": "dumb"}


def _passes(name: str, value: str) -> bool:
    if name.upper().endswith(_SECRET_ENDINGS):
        return False
    if name.lower() in PROXIES:
        return "@" not in value  # a proxy's address may carry a user's name and password
    return name in NAMES or name.startswith(PREFIXES)


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
        return evolve(
            command,
            program=program,
            args=(*self._options(command.cwd, command.confinement.box), command.program, *command.args),
        )

    def _options(self, cwd: str, box: Box) -> Iterator[str]:
        looks = box is Box.LOOK
        yield from ("--die-with-parent", "--new-session", "--unshare-pid", "--unshare-ipc", "--unshare-uts")
        if looks or not self.network:
            yield "--unshare-net"
        yield from ("--cap-drop", "ALL", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp")  # noqa: S108 - the sandbox's own
        for root in self.roots:
            yield from ("--ro-bind" if looks else "--bind", root, root)
            for name in READ_ONLY_IN_ROOTS:
                path = f"{root.rstrip('/')}/{name}"
                yield from ("--ro-bind-try", path, path)
        yield from self._secrets()
        yield from ("--chdir", cwd, "--")

    def _secrets(self) -> Iterator[str]:
        """Hide the files that must not be read, also below the roots: a home can be a project."""
        secret = (f"{self.home}/{name}" for name in (*sorted(SECRET_FOLDERS), *HIDDEN_FILES))
        for path in (*secret, *self.hidden):
            if os.path.isdir(path):
                yield from ("--tmpfs", path)
            elif os.path.isfile(path):
                yield from ("--ro-bind", os.devnull, path)
