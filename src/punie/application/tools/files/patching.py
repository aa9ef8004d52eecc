"""Unified diffs of one file, applied exactly: a hunk may have moved, but its content may not differ.

No library of the project applies a diff to a text; dulwich applies diffs to repositories.
"""

from __future__ import annotations

import re

from attrs import define, field, frozen

from punie.domain.errors import ToolFailedError

OFFSET_LIMIT = 1_000
"""How many lines a hunk may be away from the place that its header names."""

_HEADER = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_SENT_AS_WINDOWS = re.compile(r"^@@[^\n]*\r$", re.MULTILINE)
_NO_NEWLINE = "\\ No newline"


@frozen
class Hunk:
    """One hunk: the number of its first old line, from 1, and the old and new lines, each with its line feed."""

    number: int
    old_start: int
    old: tuple[str, ...]
    new: tuple[str, ...]


def apply_patch(text: str, patch: str) -> tuple[str, int]:
    """The text with every hunk applied, and how many there were. Raises `ToolFailedError` that names the hunk."""
    hunks = parse_patch(patch)
    lines = lines_of(text)
    shift = 0
    done_until = 0
    for hunk in hunks:
        # With no old line the header names the line after which the new ones go.
        wanted = hunk.old_start - (1 if hunk.old else 0) + shift
        at = _place(lines, hunk, wanted, done_until)
        lines[at : at + len(hunk.old)] = hunk.new
        _require_ended(lines, hunk, at)
        done_until = at + len(hunk.new)
        shift = at - (wanted - shift) + len(hunk.new) - len(hunk.old)
    return "".join(lines), len(hunks)


def parse_patch(patch: str) -> tuple[Hunk, ...]:
    """The hunks of a unified diff for one file; lines before the first one are passed over."""
    # A patch all of whose lines end with CR LF came so on its way; else CR is part of the lines it quotes.
    reader = _Reader(lines_of(patch.replace("\r\n", "\n") if _SENT_AS_WINDOWS.search(patch) else patch))
    hunks: list[Hunk] = []
    while reader.to_next_header():
        hunks.append(reader.hunk(len(hunks) + 1))
    if not hunks:
        raise ToolFailedError(
            "The patch holds no hunk. Give a unified diff whose hunks begin with @@ -LINE,COUNT +LINE,COUNT @@."
        )
    return tuple(hunks)


@define
class _Reader:
    lines: list[str]
    at: int = 0
    _seen_hunk: bool = field(default=False, init=False)

    def to_next_header(self) -> bool:
        while self.at < len(self.lines):
            line = self.lines[self.at]
            if line.startswith("@@"):
                return True
            if line.startswith("+++ /dev/null"):
                raise ToolFailedError("This patch deletes the file, which edit_file does not do.")
            if self._seen_hunk and line.strip():
                self._refuse_between(line)
            self.at += 1
        return False

    def _refuse_between(self, line: str) -> None:
        if line.startswith(("--- ", "diff ", "Index: ")):
            raise ToolFailedError("The patch is for several files. Call edit_file once for each of them.")
        raise ToolFailedError(
            f"The patch cannot be read: after a hunk's last line stands {line.rstrip()[:80]!r}. Count the lines of "
            "each hunk again: its header must say how many old and new lines it has."
        )

    def hunk(self, number: int) -> Hunk:
        header = _HEADER.match(self.lines[self.at])
        if header is None:
            raise ToolFailedError(
                f"Hunk {number} has a header that cannot be read: {self.lines[self.at].rstrip()[:80]!r}. "
                "It must be @@ -LINE,COUNT +LINE,COUNT @@."
            )
        self.at += 1
        self._seen_hunk = True
        start, old_count, _, new_count = (1 if part is None else int(part) for part in header.groups())
        old: list[str] = []
        new: list[str] = []
        while len(old) < old_count or len(new) < new_count:
            self._line(old, new, number, (old_count, new_count))
        self._no_newline(old, new)
        if (len(old), len(new)) != (old_count, new_count):
            raise _miscounted(number, old_count, new_count, old, new)
        return Hunk(number, start, tuple(old), tuple(new))

    def _line(self, old: list[str], new: list[str], number: int, counts: tuple[int, int]) -> None:
        line = self.lines[self.at] if self.at < len(self.lines) else ""
        kind, rest = line[:1], line[1:] if line.endswith("\n") else f"{line[1:]}\n"
        if kind == "\n":  # an empty context line whose one space was lost on the way
            kind, rest = " ", "\n"
        if not kind or kind not in " -+\\" or line.startswith("@@"):
            raise _miscounted(number, *counts, old, new)
        self.at += 1
        if kind == "\\":
            _cut_newline(self.lines[self.at - 2][:1], old, new)
            return
        if kind in " -":
            old.append(rest)
        if kind in " +":
            new.append(rest)

    def _no_newline(self, old: list[str], new: list[str]) -> None:
        if self.at < len(self.lines) and self.lines[self.at].startswith(_NO_NEWLINE):
            _cut_newline(self.lines[self.at - 1][:1], old, new)
            self.at += 1


def _cut_newline(kind: str, old: list[str], new: list[str]) -> None:
    for lines, kinds in ((old, " -"), (new, " +")):
        if kind and kind in kinds and lines:
            lines[-1] = lines[-1].removesuffix("\n")


def _miscounted(number: int, old_count: int, new_count: int, old: list[str], new: list[str]) -> ToolFailedError:
    return ToolFailedError(
        f"Hunk {number} of the patch is not complete: its header says {old_count} old and {new_count} new lines, and "
        f"it has {len(old)} and {len(new)}. Nothing was written; count its lines again, or use old_text and new_text."
    )


def _place(lines: list[str], hunk: Hunk, wanted: int, earliest: int) -> int:
    """The index of the hunk's old lines that is the nearest to that of its header."""
    if not hunk.old:
        if earliest <= wanted <= len(lines):
            return wanted
        raise ToolFailedError(f"Hunk {hunk.number} adds lines after line {hunk.old_start}, which does not exist.")
    last = len(lines) - len(hunk.old)
    candidates = range(max(earliest, wanted - OFFSET_LIMIT), min(last, wanted + OFFSET_LIMIT) + 1)
    first = hunk.old[0]
    found = [at for at in candidates if lines[at] == first and tuple(lines[at : at + len(hunk.old)]) == hunk.old]
    if not found:
        raise ToolFailedError(
            f"Hunk {hunk.number} of the patch does not fit: its context and removed lines are nowhere near line "
            f"{hunk.old_start}. Nothing was written; read the file and copy the lines exactly."
        )
    nearest = min(abs(at - wanted) for at in found)
    places = [at for at in found if abs(at - wanted) == nearest]
    if len(places) > 1:
        raise ToolFailedError(
            f"Hunk {hunk.number} of the patch fits equally well at lines {places[0] + 1} and {places[1] + 1}. "
            "Nothing was written; give more context."
        )
    return places[0]


def _require_ended(lines: list[str], hunk: Hunk, at: int) -> None:
    """A line without a line feed may only be the file's last one; a line added after such a one must not join it."""
    if hunk.new and not hunk.new[-1].endswith("\n") and at + len(hunk.new) < len(lines):
        raise ToolFailedError(f"Hunk {hunk.number} of the patch ends without a newline in the middle of the file.")
    if at and not lines[at - 1].endswith("\n"):
        if hunk.old or not hunk.new:
            return
        raise ToolFailedError(
            f"Hunk {hunk.number} of the patch adds lines after a last line that has no newline. Give that line as "
            "context, with '\\ No newline at end of file' below it."
        )


def lines_of(text: str) -> list[str]:
    """The lines of a text, each with the line feed that ends it."""
    *whole, rest = text.split("\n")
    return [f"{line}\n" for line in whole] + ([rest] if rest else [])
