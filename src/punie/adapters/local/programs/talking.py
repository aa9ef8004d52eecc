"""Programs that Punie talks with through their pipes and that only look, such as language servers (POSIX)."""

from __future__ import annotations

import os
import sys
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from subprocess import Popen

from landbox.environment import child_environment
from landbox.places import installation
from punie.adapters.local.programs.boxes import Boxes, looking
from punie.domain.errors import ToolFailedError
from punie.domain.values.paths import is_inside
from punie.mechanics.piped_process import PipedProcess, start_piped

MEMORY_MB = 3_072
"""The data that each process of such a program may have."""

_BEGIN = b"\n"
_GATE = 'read -r _; ulimit -d "$0" 2>/dev/null || :; exec "$@"'
"""The program begins once the thread that started it in its box is gone, with its memory bounded."""

_LEFT_OUT = ("PYTHON", "VIRTUAL_ENV", "CONDA_", "NODE_PATH", "LD_LIBRARY_PATH")
"""Variables that could name code of the project, or another project, for the program to load."""


@contextmanager
def talking(boxes: Boxes | None, roots: Sequence[str], home: str, words: Sequence[str]) -> Generator[PipedProcess]:
    """A program with three pipes, in the box of programs that look, where there is one; blocks for a moment.

    `roots` are the session's directories. `words` begin with the absolute path of the program, which is run with the
    installation that it belongs to, in the root folder, and ends with the block. Raises `ToolFailedError` where it
    cannot be started.
    """
    program = words[0]
    links = (program, os.path.realpath(program))
    around = (place for link in links for place in installation(os.path.dirname(link), home))
    runs = [place for place in dict.fromkeys(around) if not any(is_inside(one, (place,)) for one in (home, *roots))]

    def start(argv: Sequence[str], of_box: Mapping[str, str]) -> Popen[bytes]:
        passed = child_environment(os.environ).items()
        ours = {name: value for name, value in passed if not name.startswith(_LEFT_OUT)}
        return start_piped(argv, "/", {**ours, **of_box})

    if sys.platform == "win32":
        raise ToolFailedError("Punie starts no language server on this operating system yet.")
    gated = ("/bin/sh", "-c", _GATE, str(MEMORY_MB * 1024), *words)
    try:
        with looking(boxes, gated, start, (program, *runs)) as popen:
            process = PipedProcess(popen)
            try:
                if popen.stdin is not None:
                    os.write(popen.stdin.fileno(), _BEGIN)
                yield process
            finally:
                process.kill_group()
                popen.wait()
                process.free()
    except OSError as error:
        raise ToolFailedError(f"{program} could not be started ({error.strerror or error}).") from None
