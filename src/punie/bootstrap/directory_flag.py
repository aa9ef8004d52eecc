"""`--cwd` of a command."""

from __future__ import annotations

import sys
from pathlib import Path

from punie.domain.values.display import display_safe


def directory_of(cwd: str) -> str | None:
    """The directory, absolute and with links followed; None, with a line on stderr, where there is none."""
    try:
        directory = Path(cwd).resolve()
        if directory.is_dir():
            return str(directory)
    except (OSError, ValueError):  # the shell's own directory may be gone
        pass
    sys.stderr.write(f"punie: --cwd {display_safe(cwd)} is not a directory. Name one that exists.\n")
    return None
