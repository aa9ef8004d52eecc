"""The process of a server, and the environment that it inherits (POSIX)."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Final

from punie.domain.servers.server import StdioTransport
from punie.mechanics.piped_process import PipedProcess, start_piped

INHERITED: Final = (
    "HOME", "LANG", "LC_ALL", "LC_CTYPE", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER",
)  # fmt: skip
"""The variables of Punie's environment that a server inherits; its configuration must name all others."""


def server_environment(ours: Mapping[str, str], added: Mapping[str, str]) -> dict[str, str]:
    """The inherited variables of `ours`, and those that the configuration adds."""
    return {name: ours[name] for name in INHERITED if name in ours and not ours[name].startswith("()")} | dict(added)


def start_server(transport: StdioTransport) -> PipedProcess:
    """Start a server's program; blocks for a moment. Raises `OSError` or `ValueError` where it cannot be started."""
    environment = server_environment(os.environ, transport.env)
    return PipedProcess(start_piped([transport.command, *transport.args], transport.cwd, environment))
