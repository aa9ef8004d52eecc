"""How much memory is free on this machine."""

from __future__ import annotations

import os
from pathlib import Path

_MEMINFO = Path("/proc/meminfo")


def free_bytes() -> int | None:
    """The memory that a new program can take without pressing others; on macOS all of it; None where not known."""
    try:
        for line in _MEMINFO.read_text(encoding="ascii").splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except (OSError, ValueError, IndexError):
        pass  # not Linux
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return None


def in_words(count: int) -> str:
    """A number of bytes for people."""
    return f"{count / 1_073_741_824:.1f} GB" if count >= 100_000_000 else f"{count / 1_048_576:.1f} MB"
