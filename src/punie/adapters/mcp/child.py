"""A server's process in a group of its own, with its three pipes (POSIX).

Nothing of the group is left behind: not when the connection is closed, not when the program ends and leaves children,
and not when Punie itself is killed: a tiny guard waits for the end of a pipe that only Punie holds open, and then
kills the group.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping
from typing import Final

import anyio

from punie.domain.servers.server import StdioTransport
from punie.mechanics.process_group import ProcessGroup

INHERITED: Final = (
    "HOME", "LANG", "LC_ALL", "LC_CTYPE", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER",
)  # fmt: skip
"""What a server gets to know of our environment; everything else its configuration must name."""

CHUNK_BYTES: Final = 16_384
"""Read at once: little enough that a server that floods us leaves the others their turn."""

STDERR_KEPT_BYTES: Final = 8_192

EOF_GRACE_S: Final = 1.0
"""How long a server may take to end by itself once its input is closed."""

TERM_GRACE_S: Final = 0.5
KILL_GRACE_S: Final = 1.0

_GUARD: Final = """trap "" HUP INT TERM QUIT; read -r released || kill -9 "-$1" """


def server_environment(ours: Mapping[str, str], added: Mapping[str, str]) -> dict[str, str]:
    """The safe few of `ours`, and what the configuration adds."""
    return {name: ours[name] for name in INHERITED if name in ours and not ours[name].startswith("()")} | dict(added)


class ServerProcess:
    """A started server; lives until `free` was called. Raises `OSError` or `ValueError` where it cannot be started.

    Made in the thread of the event loop; that blocks for the moment it takes to start a program.
    """

    def __init__(self, transport: StdioTransport) -> None:
        self._popen = subprocess.Popen(  # noqa: S603 - running it is the job; a person wrote or approved this line
            [transport.command, *transport.args],
            cwd=transport.cwd,
            env=server_environment(os.environ, transport.env),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            start_new_session=True,
        )
        self._guard = _start_guard(self._popen.pid)
        pipes = (self._popen.stdin, self._popen.stdout, self._popen.stderr)
        self._in, self._out, self._err = (pipe.fileno() if pipe is not None else -1 for pipe in pipes)
        for number in (self._in, self._out, self._err):
            os.set_blocking(number, False)
        self._group = ProcessGroup(self._popen)
        self._stderr = bytearray()

    @property
    def pid(self) -> int:
        """The process's id, which is its group's id too."""
        return self._group.pid

    @property
    def exit_code(self) -> int | None:
        """How it ended, negative for a signal; None until `free`."""
        return self._popen.returncode

    @property
    def stderr(self) -> str:
        """The end of what it wrote there."""
        return self._stderr.decode("utf-8", "replace")

    async def read(self) -> bytes:
        """The next bytes of its standard output; empty at the end."""
        return await _read(self._out)

    async def keep_stderr(self) -> None:
        """Take what it writes to standard error as it comes, and keep the end of it; ends with the pipe."""
        while chunk := await _read(self._err):
            self._stderr = (self._stderr + chunk)[-STDERR_KEPT_BYTES:]

    async def write(self, data: bytes) -> None:
        """Write all of it, waiting for the server to take it. Raises `BrokenPipeError` where it no longer reads."""
        view = memoryview(data)
        while view:
            await anyio.wait_writable(self._in)
            try:
                view = view[os.write(self._in, view) :]
            except BlockingIOError:
                continue

    async def wait(self) -> None:
        """Wait until the program itself ended, whatever still holds its pipes; for one task only."""
        await self._group.wait()

    def kill_group(self) -> None:
        """Kill the program and everything that stayed in its group."""
        self._group.send(signal.SIGKILL)

    async def end(self) -> None:
        """Close its input, which asks it to end; press it where it does not; leave nothing of its group.

        No task may be writing. Bounded by the three grace times; only a program that hangs in the kernel outlives it.
        """
        if self._popen.stdin is not None:
            self._popen.stdin.close()
        if not await self._group.ended_within(EOF_GRACE_S):
            self._group.send(signal.SIGTERM)
            await self._group.ended_within(TERM_GRACE_S)
        self._group.send(signal.SIGKILL)
        await self._group.ended_within(KILL_GRACE_S)

    def free(self) -> None:
        """Give everything back; no task may wait for one of its pipes any more."""
        self._group.send(signal.SIGKILL)
        self._group.free()
        for pipe in (self._popen.stdin, self._popen.stdout, self._popen.stderr):
            if pipe is not None:
                pipe.close()
        _release_guard(self._guard)


async def _read(number: int) -> bytes:
    while True:
        await anyio.wait_readable(number)
        try:
            return os.read(number, CHUNK_BYTES)
        except BlockingIOError:
            continue
        except OSError:
            return b""


def _start_guard(group: int) -> subprocess.Popen[bytes] | None:
    try:
        return subprocess.Popen(  # noqa: S603 - our own text, with a number as its argument
            ["/bin/sh", "-c", _GUARD, "sh", str(group)],
            cwd="/",
            env={},
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    except OSError:
        return None  # the server works without: only a kill -9 of Punie may leave it


def _release_guard(guard: subprocess.Popen[bytes] | None) -> None:
    if guard is None or guard.stdin is None:
        return
    try:
        guard.stdin.write(b"released\n")
        guard.stdin.close()
    except OSError:
        guard.kill()
    guard.wait()
