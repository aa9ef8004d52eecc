"""Bounds of the end-to-end tests: for a fact to come, and for a person who waits."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Final

BOUND_S: Final = 30.0
"""Longer than any awaited fact takes on a machine that is busy with other work."""

_PRESSURE = Path("/proc/pressure/cpu")


class Stopwatch:
    """Runs from its making on, but not while some program waits for a processor, where the system says so (Linux).

    A promise such as "within a second" is about a machine with time to keep it.
    """

    def __init__(self) -> None:
        """Start now."""
        self._began_s = time.monotonic()
        self._lacked_s = _lacked_s()

    def seconds(self) -> float:
        """How long it has run."""
        return time.monotonic() - self._began_s - (_lacked_s() - self._lacked_s)


def _lacked_s() -> float:
    try:
        return int(_PRESSURE.read_text("ascii").split("total=")[1].split()[0]) / 1e6
    except (OSError, IndexError, ValueError):
        return 0.0
