"""Finding a text literally in files, one file at a time."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

from punie.adapters.local.files.folders import open_file, read_at_most
from punie.adapters.local.files.ignore_rules import is_costly, matcher
from punie.domain.errors import ToolFailedError
from punie.ports.workspace import FoundLine

FILE_LIMIT_BYTES = 2 * 1024 * 1024
"""Larger files are passed over: they are data, or made by a program."""

LINE_LIMIT_CHARS = 1_000
"""What is shown of one line: a minified file may be a single one."""

_BRACE_LIMIT = 64


class Needle:
    """The text that is looked for; a line holds it or not. Lives as long as one search."""

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
    """Which files are searched: `*.py` goes for names, `src/**/*.py` for paths below the start, `{a,b}` for either."""

    def __init__(self, glob: str | None) -> None:
        self._excludes = glob is not None and glob.startswith("!")
        patterns = [] if glob is None else _braces(glob.removeprefix("!"))
        if any(is_costly(pattern) for pattern in patterns):
            raise ToolFailedError(f"The glob {glob!r} has too many stars to be matched quickly. Use a simpler one.")
        self._spec = matcher(patterns) if patterns else None

    def takes(self, path_below_start: str) -> bool:
        """Whether a file is searched, by its path relative to the start."""
        if self._spec is None:
            return True
        return self._spec.match_file(path_below_start) is not self._excludes


def read_searchable(folder_fd: int, name: str) -> bytes | None:
    """The file's bytes; None where it is binary, too large, gone, or closed to us."""
    try:
        descriptor = open_file(folder_fd, name)
    except OSError:
        return None
    try:
        if os.fstat(descriptor).st_size > FILE_LIMIT_BYTES:
            return None
        data = read_at_most(descriptor, FILE_LIMIT_BYTES)
    except OSError:
        return None
    finally:
        os.close(descriptor)
    return None if len(data) > FILE_LIMIT_BYTES or b"\0" in data else data


def _window(line: str, found_at: int) -> str:
    if len(line) <= LINE_LIMIT_CHARS:
        return line
    start = max(0, min(found_at - LINE_LIMIT_CHARS // 4, len(line) - LINE_LIMIT_CHARS))
    cut = line[start : start + LINE_LIMIT_CHARS]
    return f"{'... ' if start else ''}{cut}{' ...' if start + LINE_LIMIT_CHARS < len(line) else ''}"


def _braces(glob: str) -> list[str]:
    """`*.{ts,tsx}` as `*.ts` and `*.tsx`, which the matcher does not know by itself."""
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
