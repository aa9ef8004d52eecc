"""A program that enters a box and becomes another program: `python -I -S -B launch.py BOX_FILE -- PROGRAM ARGS...`.

BOX_FILE holds a box as `Box.as_json` writes it, and gets a line end once the box is entered. Where it cannot be entered
nothing is started, and the exit code is 126.
"""

from __future__ import annotations

import os
import sys

FAILED = 126


def main(arguments: list[str]) -> int:
    """Enter the box and start the program; returns only where that failed."""
    sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))  # behind the standard library's
    from landbox.box import Box, enter
    from landbox.kernel import UnheldError

    try:
        file, _, *words = arguments
        with open(file, "r+", encoding="utf-8") as opened:
            box = Box.of_json(opened.read())
            environment = {**os.environ, **dict(box.environment)}
            enter(box)
            opened.write("\n")
        os.execvpe(words[0], words, environment)  # noqa: S606 - starting the program is the job
    except (OSError, ValueError, TypeError, IndexError, UnheldError) as error:
        sys.stderr.write(f"landbox: {error}\n")
        return FAILED


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
