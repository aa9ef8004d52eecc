"""Letting ripgrep, where it is installed, pick the files that are worth reading.

It only names files: each is then read and searched by our own code, so that the answer does not depend on whether
ripgrep is there. No shell, no configuration file, no pattern that could be taken for an option.
"""

from __future__ import annotations

import os
import re
import select
import shutil
import subprocess

from attrs import frozen

from punie.adapters.local.child_environment import child_environment
from punie.adapters.local.files.ignore_rules import IgnoreRules
from punie.adapters.local.files.stop_flag import StopFlag
from punie.adapters.local.files.text_search import FILE_LIMIT_BYTES
from punie.domain.values.paths import is_inside

CANDIDATE_LIMIT = 50_000
_CHUNK_BYTES = 65_536

# In the same words as IgnoreRules: .gitignore with or without a repository, hidden files too, nothing of ripgrep's own.
_OPTIONS = (
    "--no-config", "--files-with-matches", "--null", "--stats", "--color=never", "--no-messages", "--fixed-strings",
    "--hidden", "--glob=!.git", "--no-require-git", "--no-ignore-dot", "--no-ignore-global", "--no-follow",
    "--no-mmap", "--encoding=none", f"--max-filesize={FILE_LIMIT_BYTES}",
)  # fmt: skip


@frozen
class Candidates:
    """Absolute paths in path order; how many files were searched (0: not heard), and whether it got to the end."""

    paths: tuple[str, ...]
    searched: int
    complete: bool


class RipgrepUnusableError(Exception):
    """This ripgrep cannot do it (too old, broken): the caller searches without it."""


def find_ripgrep(name: str, roots: tuple[str, ...]) -> str | None:
    """The absolute path of the program, or None. One that lies in the session's own directories is never run."""
    found = shutil.which(name)
    if found is None or not os.path.isabs(found) or is_inside(os.path.realpath(found), roots):
        return None
    return found


def candidates(
    program: str, text: str, start: str, rules: IgnoreRules, stop: StopFlag, *, case_sensitive: bool
) -> Candidates:
    """The files below `start` that seem to hold `text`. Blocks; raises `RipgrepUnusableError`."""
    options = [*_OPTIONS, "--case-sensitive" if case_sensitive else "--ignore-case"]
    if rules.start_is_ignored or not rules.in_repository:
        options.append("--no-ignore-parent")  # rules from above the session's root are none of ours
    try:
        process = subprocess.Popen(  # noqa: S603 - an argument list, and the pattern stands behind "--"
            [program, *options, "--", text, start],
            env=child_environment(os.environ),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
    except (OSError, ValueError) as error:
        raise RipgrepUnusableError(str(error)) from error
    try:
        stop.watch(process)
        said, complete = _output(process, stop)
    finally:
        stop.watch(None)
        process.kill()
        process.communicate()
    return _understood(said, complete=complete)


def _output(process: subprocess.Popen[bytes], stop: StopFlag) -> tuple[bytes, bool]:
    assert process.stdout is not None  # noqa: S101 - it was started with a pipe
    waiting = select.poll()
    waiting.register(process.stdout, select.POLLIN | select.POLLHUP)
    said: list[bytes] = []
    paths = 0
    while not stop.raised and paths <= CANDIDATE_LIMIT:
        if not waiting.poll(stop.left_s * 1000):
            continue
        data = os.read(process.stdout.fileno(), _CHUNK_BYTES)
        if not data:
            return b"".join(said), not stop.raised
        said.append(data)
        paths += data.count(b"\0")
    return b"".join(said), False


def _understood(said: bytes, *, complete: bool) -> Candidates:
    *paths, summary = said.split(b"\0")
    searched = re.search(rb"(\d+) files? searched", summary)
    if complete and searched is None:  # it says so at the end of every search that took place
        raise RipgrepUnusableError("it gave no summary")
    found = sorted((os.fsdecode(path) for path in paths), key=lambda path: path.split("/"))
    return Candidates(tuple(found), int(searched[1]) if searched else 0, complete)
