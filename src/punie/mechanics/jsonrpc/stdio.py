"""ACP over file descriptors: the process's own stdin and stdout, or the pipes of a child (ACP: transports, stdio)."""

from __future__ import annotations

import errno
import os
import stat
import sys
from functools import partial
from typing import TYPE_CHECKING, Final

import anyio
import anyio.lowlevel

from punie.mechanics.jsonrpc.connection import Transport
from punie.mechanics.jsonrpc.lines import LineSplitter, Oversized

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from types import TracebackType
    from typing import Self

    from punie.mechanics.jsonrpc.blocking_lane import BlockingCall

MAX_LINE_BYTES: Final = 64 * 2**20
_CHUNK_BYTES: Final = 2**16
_BLOCKING_WRITE_BYTES: Final = 512  # POSIX: once a pipe polls writable, PIPE_BUF bytes go in at once; 512 is its least
_STANDARD_FDS: Final = (0, 1, 2)


def claim_stdout() -> int:
    """Make the process's stdout the wire and nothing else: returns the descriptor to write the protocol to.

    Descriptor 1 and `sys.stdout` become stderr (nowhere, where there is no stderr), for this process and the children
    it starts, so that a stray print, a C library or a subprocess cannot tear the protocol (A-14). Called once, before
    any adapter is built. The descriptor is not inherited by children. Raises OSError when stdout is closed.
    """
    os.fstat(1)
    _occupy_standard_fds()
    if sys.stdout is not None:
        sys.stdout.flush()
    wire = os.dup(1)
    os.dup2(2, 1)
    if sys.stderr is not None:
        sys.stdout = sys.stderr
    _make_binary(wire)
    return wire


def claim_stdin() -> int:
    """Make the process's stdin the wire: returns the descriptor to read the protocol from.

    Descriptor 0 becomes the null device, so that a child or a library that reads stdin gets end of input and not the
    client's next message. `sys.stdin` reads the null device too. Raises OSError when stdin is closed.
    """
    os.fstat(0)
    _occupy_standard_fds()
    wire = os.dup(0)
    null = os.open(os.devnull, os.O_RDONLY)
    try:
        os.dup2(null, 0)
    finally:
        os.close(null)
    _make_binary(wire)
    return wire


class FdTransport(Transport):
    """Newline-delimited JSON on two descriptors, which stay the caller's: `close` restores their flags only.

    Pipes, sockets and terminals are waited for by the event loop; regular files and other devices, which it refuses,
    are read and written directly. Where it can wait for no pipe (Windows) daemon threads do. The descriptor read from
    is never made non-blocking; the one written to is, unless stdin or stderr is the same pipe.
    """

    def __init__(self, read_fd: int, write_fd: int, max_line_bytes: int = MAX_LINE_BYTES) -> None:
        self.max_line_bytes = max_line_bytes
        self._read_fd = read_fd
        self._write_fd = write_fd
        self._lines = LineSplitter(max_line_bytes)
        self._ended = False
        self._unblocked = False
        self._read_chunk: Callable[[], Awaitable[bytes]]
        self._write_some: Callable[[memoryview], Awaitable[int]]
        if sys.platform == "win32":
            self._use_threads()
        else:
            self._use_event_loop()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Give the descriptors back as they were; idempotent. Call it when the connection's `run` has returned."""
        if self._unblocked:
            self._unblocked = False
            try:
                os.set_blocking(self._write_fd, True)
            except OSError as exc:
                if exc.errno != errno.EBADF:  # closed by its owner first
                    raise

    async def receive(self) -> bytes | bytearray | Oversized | None:
        """The next line; see Transport. A last line without a newline counts."""
        while (line := self._lines.pop()) is None and not self._ended:
            chunk = await self._read_chunk()
            if chunk:
                self._lines.feed(chunk)
            else:
                self._ended = True
                self._lines.finish()
        return line

    async def send(self, data: bytes) -> None:
        """Write all of `data`; see Transport. Cancelled half-way it leaves a torn line: only the end may do that."""
        rest = memoryview(data)
        while rest:
            rest = rest[await self._write_some(rest) :]

    # -- POSIX: the event loop waits --------------------------------------------------------------------------------

    def _use_event_loop(self) -> None:
        self._read_chunk = self._read_when_ready if _can_be_waited_for(self._read_fd) else self._read_directly
        if not _can_be_waited_for(self._write_fd):
            self._write_some = self._write_directly
        elif _may_unblock(self._write_fd):
            if os.get_blocking(self._write_fd):
                os.set_blocking(self._write_fd, False)
                self._unblocked = True
            self._write_some = self._write_optimistically
        else:
            self._write_some = self._write_cautiously

    async def _read_when_ready(self) -> bytes:
        while True:
            await anyio.wait_readable(self._read_fd)
            try:
                return os.read(self._read_fd, _CHUNK_BYTES)
            except BlockingIOError:
                continue  # somebody made it non-blocking and another reader was faster

    async def _read_directly(self) -> bytes:
        await anyio.lowlevel.checkpoint()
        return os.read(self._read_fd, _CHUNK_BYTES)

    async def _write_optimistically(self, data: memoryview) -> int:
        while True:
            try:
                return os.write(self._write_fd, data)
            except BlockingIOError:
                await anyio.wait_writable(self._write_fd)

    async def _write_cautiously(self, data: memoryview) -> int:
        await anyio.wait_writable(self._write_fd)
        return os.write(self._write_fd, data[:_BLOCKING_WRITE_BYTES])

    async def _write_directly(self, data: memoryview) -> int:
        return os.write(self._write_fd, data)

    # -- Windows: daemon threads wait -------------------------------------------------------------------------------

    def _use_threads(self) -> None:
        from punie.mechanics.jsonrpc.blocking_lane import (
            BlockingLane,  # what it imports is start-up time that others do not need
        )

        self._reader = BlockingLane("acp reader")
        self._writer = BlockingLane("acp writer")
        self._reading: BlockingCall[bytes] | None = None
        self._read_chunk = self._read_in_thread
        self._write_some = self._write_in_thread

    async def _read_in_thread(self) -> bytes:
        from punie.mechanics.jsonrpc.blocking_lane import BlockingCall

        if self._reading is None:
            self._reading = BlockingCall(partial(os.read, self._read_fd, _CHUNK_BYTES))
            self._reader.start(self._reading)
        chunk = await self._reading.result()  # when cancelled here, the next call takes up the same read
        self._reading = None
        return chunk

    async def _write_in_thread(self, data: memoryview) -> int:
        from punie.mechanics.jsonrpc.blocking_lane import BlockingCall

        call = BlockingCall(partial(os.write, self._write_fd, data))
        self._writer.start(call)
        return await call.result()


def _occupy_standard_fds() -> None:
    """Give each closed standard descriptor the null device: else the wire itself might be opened under its number."""
    for fd in _STANDARD_FDS:
        try:
            os.fstat(fd)
        except OSError:
            null = os.open(os.devnull, os.O_RDWR)
            if null != fd:
                os.dup2(null, fd)
                os.close(null)
            os.set_inheritable(fd, True)


def _make_binary(fd: int) -> None:
    if sys.platform == "win32":
        import msvcrt

        msvcrt.setmode(fd, os.O_BINARY)


def _can_be_waited_for(fd: int) -> bool:
    mode = os.fstat(fd).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or os.isatty(fd)


def _may_unblock(fd: int) -> bool:
    """O_NONBLOCK belongs to the open file, so it would also hit whoever shares it: a log line to stderr would fail."""
    status = os.fstat(fd)
    if not (stat.S_ISFIFO(status.st_mode) or stat.S_ISSOCK(status.st_mode)):
        return False
    return not any(_is_same_file(status, other) for other in _STANDARD_FDS if other != fd)


def _is_same_file(status: os.stat_result, fd: int) -> bool:
    try:
        return os.path.samestat(status, os.fstat(fd))
    except OSError:
        return False
