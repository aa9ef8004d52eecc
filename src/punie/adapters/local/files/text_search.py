"""Finding a text literally in files, one file at a time, with ripgrep's help where it is installed."""

from __future__ import annotations

import os
import re
import select
import shutil
import subprocess
from collections.abc import Iterator

from attrs import frozen

from landbox.environment import child_environment
from punie.adapters.local.files.tree_walk import StopFlag
from punie.domain.errors import ToolFailedError
from punie.domain.values.paths import is_inside
from punie.mechanics.files import opened_file, read_at_most
from punie.mechanics.ignore_rules import IgnoreRules, is_costly, matcher
from punie.ports.workspace import FoundLine

FILE_LIMIT_BYTES = 2 * 1024 * 1024
"""Larger files are passed over as data, or as written by a program."""

LINE_LIMIT_CHARS = 1_000
"""Characters shown of one line: a minified file may be a single line."""

_BRACE_LIMIT = 64


class Needle:
    """The text that a search looks for; lives as long as the search."""

    def __init__(self, text: str, *, case_sensitive: bool) -> None:
        if not text or "\n" in text or "\r" in text or "\0" in text:
            raise ToolFailedError("The text to search for must be one line, not empty. Search for one line of it.")
        flags = 0 if case_sensitive else re.IGNORECASE
        self._pattern = re.compile(re.escape(text), flags)
        self._bytes = text.encode("utf-8", "surrogatepass")
        self._exact = case_sensitive
        self._folded = self._bytes.lower()

    def lines_of(self, path: str, data: bytes) -> Iterator[FoundLine]:
        """The lines that hold the text, in order; bytes that are no UTF-8 show as U+FFFD."""
        if self._surely_not_in(data):  # most files end here, undecoded
            return
        text = data.decode("utf-8", "replace")
        if self._pattern.search(text) is None:
            return
        for number, line in enumerate(text.split("\n"), start=1):
            found = self._pattern.search(line)
            if found is not None:
                yield FoundLine(path, number, _window(line.removesuffix("\r"), found.start()))

    def _surely_not_in(self, data: bytes) -> bool:
        if self._exact:
            return self._bytes not in data
        # Beyond ASCII other letters may be equal without regard to case (the Kelvin sign and k).
        return data.isascii() and self._folded not in data.lower()


class Glob:
    """A filter of files: `*.py` matches names, `src/**/*.py` paths below the start, `{a,b}` either of two."""

    def __init__(self, glob: str | None) -> None:
        self._excludes = glob is not None and glob.startswith("!")
        patterns = [] if glob is None else [os.fsencode(pattern) for pattern in _braces(glob.removeprefix("!"))]
        if any(is_costly(pattern) for pattern in patterns):
            raise ToolFailedError(f"The glob {glob!r} has too many stars to be matched quickly. Use a simpler one.")
        self._rules = matcher(patterns) if patterns else None

    def takes(self, path_below_start: str) -> bool:
        """Whether a file is searched; the path is relative to the start."""
        if self._rules is None:
            return True
        return bool(self._rules.is_ignored(path_below_start)) is not self._excludes


def read_searchable(folder_fd: int, name: str) -> bytes | None:
    """The file's bytes; None where it is binary, too large, gone, or not readable."""
    try:
        with opened_file(folder_fd, name) as descriptor:
            if os.fstat(descriptor).st_size > FILE_LIMIT_BYTES:
                return None
            data = read_at_most(descriptor, FILE_LIMIT_BYTES)
    except OSError:
        return None
    return None if len(data) > FILE_LIMIT_BYTES or b"\0" in data else data


def _window(line: str, found_at: int) -> str:
    if len(line) <= LINE_LIMIT_CHARS:
        return line
    start = max(0, min(found_at - LINE_LIMIT_CHARS // 4, len(line) - LINE_LIMIT_CHARS))
    cut = line[start : start + LINE_LIMIT_CHARS]
    return f"{'... ' if start else ''}{cut}{' ...' if start + LINE_LIMIT_CHARS < len(line) else ''}"


def _braces(glob: str) -> list[str]:
    """Write `*.{ts,tsx}` as `*.ts` and `*.tsx`: the matcher has no braces."""
    ahead = [glob]
    whole: list[str] = []
    while ahead:
        if len(ahead) + len(whole) > _BRACE_LIMIT:
            raise ToolFailedError(f"The glob {glob[:100]!r} has too many alternatives. Use a simpler one.")
        pattern = ahead.pop(0)
        group = re.search(r"\{([^{}]*,[^{}]*)\}", pattern)
        if group is None:
            whole.append(pattern)
        else:
            ahead.extend(pattern[: group.start()] + option + pattern[group.end() :] for option in group[1].split(","))
    return whole


CANDIDATE_LIMIT = 50_000
_CHUNK_BYTES = 65_536

# As IgnoreRules: .gitignore with or without a repository, hidden files included, no ignore files of ripgrep's own.
_OPTIONS = (
    "--no-config", "--files-with-matches", "--null", "--stats", "--color=never", "--no-messages", "--fixed-strings",
    "--hidden", "--glob=!.git", "--no-require-git", "--no-ignore-dot", "--no-ignore-global", "--no-follow",
    "--no-mmap", "--encoding=none", f"--max-filesize={FILE_LIMIT_BYTES}",
)  # fmt: skip


@frozen
class Candidates:
    """Absolute paths in path order, the number of files searched (0: unknown), and whether all were searched."""

    paths: tuple[str, ...]
    searched: int
    complete: bool


class RipgrepUnusableError(Exception):
    """This ripgrep is too old or broken; the caller searches without it."""


def find_ripgrep(name: str, roots: tuple[str, ...]) -> str | None:
    """The absolute path of the program, or None. A program in the session's own directories is never run."""
    found = shutil.which(name)
    if found is None or not os.path.isabs(found) or is_inside(os.path.realpath(found), roots):
        return None
    return found


def candidates(
    program: str, text: str, start: str, rules: IgnoreRules, stop: StopFlag, *, case_sensitive: bool
) -> Candidates:
    """The files below `start` in which ripgrep found `text`. Blocks; raises `RipgrepUnusableError`.

    The caller reads and searches each of them, so that the answer does not depend on whether ripgrep is installed.
    """
    options = [*_OPTIONS, "--case-sensitive" if case_sensitive else "--ignore-case"]
    if rules.start_is_ignored or not rules.in_repository:
        options.append("--no-ignore-parent")  # rules from above the session's root do not count
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
        output, complete = _output(process, stop)
    finally:
        stop.watch(None)
        process.kill()
        process.communicate()
    return _understood(output, complete=complete)


def _output(process: subprocess.Popen[bytes], stop: StopFlag) -> tuple[bytes, bool]:
    assert process.stdout is not None  # noqa: S101 - it was started with a pipe
    waiting = select.poll()
    waiting.register(process.stdout, select.POLLIN | select.POLLHUP)
    output: list[bytes] = []
    paths = 0
    while not stop.raised and paths <= CANDIDATE_LIMIT:
        if not waiting.poll(stop.left_s * 1000):
            continue
        data = os.read(process.stdout.fileno(), _CHUNK_BYTES)
        if not data:
            return b"".join(output), not stop.raised
        output.append(data)
        paths += data.count(b"\0")
    return b"".join(output), False


def _understood(output: bytes, *, complete: bool) -> Candidates:
    *paths, summary = output.split(b"\0")
    searched = re.search(rb"(\d+) files? searched", summary)
    if complete and searched is None:  # it prints a summary at the end of every search
        raise RipgrepUnusableError("it gave no summary")
    found = sorted((os.fsdecode(path) for path in paths), key=lambda path: path.split("/"))
    return Candidates(tuple(found), int(searched[1]) if searched else 0, complete)
