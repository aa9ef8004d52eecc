"""A command at a terminal, with a person who types what is asked for."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

LIMIT_S = 60.0


def run_at_a_terminal(
    command: Sequence[str], typed: Sequence[tuple[str, str]], *, env: Mapping[str, str], cwd: Path
) -> tuple[int, str]:
    """Run it, type each answer once its question is on the screen; gives the exit code and the whole screen."""
    ours, theirs = pty.openpty()
    try:
        process = subprocess.Popen(
            command, stdin=theirs, stdout=theirs, stderr=theirs, env=env, cwd=cwd, start_new_session=True
        )
    finally:
        os.close(theirs)
    screen = ""
    seen = 0
    try:
        for question, answer in typed:
            while question not in screen[seen:]:
                more = _read(ours)
                assert more, f"{question!r} was never asked:\n{screen}"
                screen += more
            seen = screen.index(question, seen) + len(question)
            os.write(ours, f"{answer}\n".encode())
        while more := _read(ours):
            screen += more
        return process.wait(LIMIT_S), screen
    finally:
        process.kill()
        process.wait()
        os.close(ours)


def _read(descriptor: int) -> str:
    """What comes next; nothing once the command has left."""
    ready, _, _ = select.select([descriptor], [], [], LIMIT_S)
    assert ready, f"nothing was said for {LIMIT_S} s (at {time.ctime()})"
    try:
        return os.read(descriptor, 65_536).decode("utf-8", "replace")
    except OSError:  # Linux says so that the other end is closed
        return ""
