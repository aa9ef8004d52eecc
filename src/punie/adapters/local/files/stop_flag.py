"""A flag that tells work in a thread that its caller does not wait for it any more."""

from __future__ import annotations

import subprocess
import threading
import time


class StopFlag:
    """Raised when the caller was cancelled, or when `time_s` seconds are over; lives as long as one piece of work."""

    def __init__(self, time_s: float) -> None:
        self._deadline = time.monotonic() + time_s
        self._cancelled = False
        self._lock = threading.Lock()
        self._program: subprocess.Popen[bytes] | None = None

    @property
    def raised(self) -> bool:
        """Whether the work should stop now."""
        return self._cancelled or time.monotonic() >= self._deadline

    @property
    def left_s(self) -> float:
        """The seconds that are left, 0 or more."""
        return 0.0 if self._cancelled else max(0.0, self._deadline - time.monotonic())

    def cancel(self) -> None:
        """Raise it now, and kill the program that the work waits for."""
        with self._lock:
            self._cancelled = True
            if self._program is not None:
                self._program.kill()

    def watch(self, program: subprocess.Popen[bytes] | None) -> None:
        """The program that the work waits for from now on; it is killed at once where the flag was raised already."""
        with self._lock:
            self._program = program
            if program is not None and self._cancelled:
                program.kill()
