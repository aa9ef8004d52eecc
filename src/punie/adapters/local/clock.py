"""The machine's clocks."""

from __future__ import annotations

import time

from punie.ports.machine import Clock


class LocalClock(Clock):
    """Measures with the operating system's monotonic clock, and reads the wall clock; lives as long as the process."""

    def monotonic_s(self) -> float:
        """Seconds since some moment; unaffected by changes of the wall clock."""
        return time.monotonic()

    def epoch_s(self) -> float:
        """Seconds since 1970 in UTC."""
        return time.time()
