"""The process's monotonic clock."""

from __future__ import annotations

import time

from punie.ports.clock import Clock


class LocalClock(Clock):
    """Measures with the operating system's monotonic clock; lives as long as the process."""

    def monotonic_s(self) -> float:
        """Seconds since some moment; unaffected by changes of the wall clock."""
        return time.monotonic()
