"""Parts of a run that commands share: the log, signals and the exit codes that report them, and `--cwd`."""

from __future__ import annotations

import logging
import os
import signal
import stat
import sys
from collections.abc import Awaitable, Callable, Mapping
from enum import IntEnum
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import anyio

from punie.domain.values.display import display_safe
from punie.mechanics.output import exit_code_with_loss
from punie.mechanics.questions import YES_OR_NO, YES_OR_NO_HINT, answer, asking

if TYPE_CHECKING:
    from io import TextIOWrapper

    from anyio.abc import TaskStatus


class Exit(IntEnum):
    """The exit codes of commands, beside those of signals."""

    DONE = 0
    FAILED = 1
    USAGE = 2
    DENIED = 3
    MODEL = 4


EXIT_OF_SIGNAL = {signal.SIGINT: 130, signal.SIGTERM: 143}

MAX_LOG_BYTES = 5 * 1_048_576
KEPT_FILES = 3


class _SafeFormatter(logging.Formatter):
    """Formats a record without control characters, which a peer may have written."""

    def format(self, record: logging.LogRecord) -> str:
        return display_safe(super().format(record))


def start_logging(environ: Mapping[str, str], log_file: str | None) -> logging.Logger:
    """Set up the logging of the process; returns its logger. `PUNIE_LOG_LEVEL` chooses the level (default INFO).

    Raises `OSError` where the file cannot be written.
    """
    handler = logging.StreamHandler(sys.stderr) if log_file is None else _log_file(log_file)
    handler.setFormatter(_SafeFormatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    level = logging.getLevelNamesMapping().get(environ.get("PUNIE_LOG_LEVEL", "INFO").upper(), logging.INFO)
    log = logging.getLogger("punie")
    for former in log.handlers:
        former.close()
    log.handlers[:] = [handler]
    log.setLevel(level)
    log.propagate = False
    if log_file is not None and sys.platform != "win32":
        there = Path(log_file).stat()
        if stat.S_ISREG(there.st_mode) and (there.st_mode & 0o077 or there.st_uid != os.geteuid()):
            log.warning("%s was there before, and other users of this machine may read it", log_file)
    return log


def _log_file(path: str) -> logging.Handler:
    """Writes to the file, which is made readable by its owner only, as are those that follow it."""
    from logging.handlers import RotatingFileHandler  # imports sockets and pickle

    class OwnFile(RotatingFileHandler):
        def _open(self) -> TextIOWrapper:
            return os.fdopen(_opened(self.baseFilename), "a", encoding=self.encoding, errors=self.errors)

    Path(path).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    return OwnFile(path, maxBytes=MAX_LOG_BYTES, backupCount=KEPT_FILES, encoding="utf-8", errors="replace")


def _opened(path: str) -> int:
    """A descriptor to append to the file. A link is not followed in a folder where others may have put it."""
    shared = Path(path).parent.stat().st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    return os.open(path, flags | (getattr(os, "O_NOFOLLOW", 0) if shared else 0), 0o600)


async def watch_signals(
    act: Callable[[int], None], *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED
) -> None:
    """Hand the exit code of each signal to `act`, until cancelled. On Windows there is nothing to watch this way.

    `task_status` is started once signals are caught.
    """
    if sys.platform == "win32":
        task_status.started()
        return
    with anyio.open_signal_receiver(*EXIT_OF_SIGNAL) as signals:
        task_status.started()
        async for number in signals:
            act(EXIT_OF_SIGNAL[number])


async def unless_interrupted(work: Callable[[], Awaitable[int]]) -> int:
    """The exit code of the work; a signal cancels it, and then the code is the signal's."""
    interrupted: int | None = None
    code = 1
    async with anyio.create_task_group() as tasks:

        def stop(exit_code: int) -> None:
            nonlocal interrupted
            interrupted = exit_code
            tasks.cancel_scope.cancel()

        tasks.start_soon(watch_signals, stop)
        code = await work()
        tasks.cancel_scope.cancel()
    return code if interrupted is None else interrupted


def command_environ() -> dict[str, str]:
    """The environment of a command for people, whose log shows warnings alone unless `PUNIE_LOG_LEVEL` is set."""
    return {"PUNIE_LOG_LEVEL": "WARNING", **os.environ}


def wrong(what: str, exit_code: int = Exit.USAGE) -> int:
    """Write what is wrong to stderr, safe for a terminal; returns the exit code."""
    sys.stderr.write(f"punie: {display_safe(what)}\n")
    return exit_code


def person_is_here() -> bool:
    """Whether a person sits at this terminal, to read stderr and to answer."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def person_agrees(question: str) -> bool:
    """Whether the person says yes, asked on stderr, since stdout is for programs. Raises `KeyboardInterrupt`."""
    asked = asking(sys.stderr.write, "", f"{question} [y/N] ", YES_OR_NO, False, YES_OR_NO_HINT)
    if not (agreed := answer(asked, sys.stdin.readline)):
        sys.stderr.write("Nothing was changed.\n")
    return agreed


def directory_of(cwd: str) -> Path:
    """The directory of `--cwd`, absolute and with links followed; where there is none, the process exits with code 2.

    Raises `SystemExit`, as argparse does for wrong usage.
    """
    try:
        directory = Path(cwd).resolve()
        if directory.is_dir():
            return directory
    except (OSError, ValueError):  # the shell's own directory may be gone
        pass
    raise SystemExit(wrong(f"--cwd {cwd} is not a directory. Name one that exists."))


class WaitingLine:
    """A line on stderr that says what is waited for, and goes away; one run of a command."""

    def __init__(self) -> None:
        self._shown = False

    def show(self, text: str) -> None:
        """Show the line, in place of the former one."""
        sys.stderr.write(f"\r\x1b[K{text}")
        sys.stderr.flush()
        self._shown = True

    def clear(self) -> None:
        """Remove the line, where one is shown."""
        if self._shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
            self._shown = False


def exit_at_once(exit_code: int) -> NoReturn:
    """End the process now, after the log was flushed.

    A thread that still waits for the keyboard, or imports a library, does not delay the exit.
    """
    logging.shutdown()
    os._exit(exit_code_with_loss(exit_code))
