"""The operating system's table of processes."""

from __future__ import annotations

import os
import platform
import sys
import time
from pathlib import Path

from attrs import define, field

from punie.domain.session.log import ProcessIdentity
from punie.ports.machine import ProcessTable

STATE, START_TIME = 0, 19
"""Places in /proc/PID/stat behind the program's name: the state, and the clock ticks from the boot to its start."""

GONE = frozenset({"Z", "X", "x"})
"""States of a process that ended and only waits for its parent to hear so."""

LOADED = str(time.time_ns())
"""Tells this process from an earlier one of its number where the system does not say when it began."""


@define
class LocalProcessTable(ProcessTable):
    """Linux tells when a process began; macOS only that one of that number lives; Windows is not asked."""

    proc: Path = field(default=Path("/proc"))
    _own: ProcessIdentity | None = field(default=None, init=False)

    def own(self) -> ProcessIdentity:
        pid = os.getpid()
        if self._own is None or self._own.pid != pid:  # once: a laptop's name changes with its network
            state = self._state(pid)
            self._own = ProcessIdentity(self._machine(), pid, LOADED if state is None else state[1])
        return self._own

    def lives(self, process: ProcessIdentity) -> bool | None:
        if (
            process.machine != self.own().machine or sys.platform == "win32"
        ):  # there os.kill ends what it is asked about
            return None
        if process.pid == os.getpid():
            return process == self.own()
        if self._begins():
            state = self._state(process.pid)
            return state is not None and state[0] not in GONE and process.started == state[1]
        try:
            os.kill(process.pid, 0)
        except PermissionError:
            return True  # somebody else's
        except (OSError, OverflowError):
            return False
        return True

    def _machine(self) -> str:
        """Its name, and where the system has several tables of processes, which of them is ours."""
        name = platform.node() or "unnamed"
        try:
            return f"{name} {(self.proc / 'self/ns/pid').readlink().name}"
        except OSError:
            return name

    def _begins(self) -> str:
        """Which start of the machine this is; empty where it has no /proc to tell."""
        try:
            return (self.proc / "sys/kernel/random/boot_id").read_text("ascii").strip()
        except (OSError, ValueError):
            return ""

    def _state(self, pid: int) -> tuple[str, str] | None:
        """A process's state and when it began; None where there is none, or no /proc."""
        boot = self._begins()
        try:
            told = (self.proc / str(pid) / "stat").read_bytes().decode("utf-8", "replace")
            words = told.rpartition(")")[2].split()  # the program's name before it may have spaces and brackets
            return words[STATE], f"{boot}/{words[START_TIME]}"
        except (OSError, IndexError):
            return None
