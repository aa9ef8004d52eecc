"""Hunks of patches put in their places in a text.

The content of a hunk decides where it goes; line numbers and section names are hints that choose among several such
places. A hunk whose place is still not certain is refused. No library of the project applies a patch to a text; dulwich
applies diffs to repositories.
"""

from __future__ import annotations

from functools import cached_property

from attrs import define, evolve, field

from punie.application.tools.files.nearest import nearest
from punie.application.tools.files.patch_reading import Hunk, lines_of
from punie.domain.errors import ToolFailedError

CLEARLY = 3
"""The number in a header chooses a place where the next one is more than this many times as far away."""


def apply_hunks(text: str, hunks: list[Hunk], *, hints: bool = True) -> str:
    """The text with every hunk applied; without `hints`, which may be older than the text, by its content alone.

    Raises `ToolFailedError` that names the hunks that have no certain place.
    """
    places, problems = _Places(lines_of(text), hints), list[str]()
    for hunk in hunks:
        try:
            places.take(hunk)
        except ToolFailedError as error:
            problems.append(str(error))
    if problems:
        raise ToolFailedError("\n".join([*problems, "Nothing was written."]))
    return places.applied()


def in_its_line_ends(before: str, hunks: list[Hunk], *, hints: bool = True) -> str:
    """As `apply_hunks`; in a text all of whose lines end with CR LF the line ends of the hunks do not count."""
    if not uniform_windows(before):
        return apply_hunks(before, hunks, hints=hints)
    plain = [
        evolve(hunk, lines=tuple((sign, text.replace("\r\n", "\n")) for sign, text in hunk.lines)) for hunk in hunks
    ]
    return apply_hunks(before.replace("\r\n", "\n"), plain, hints=hints).replace("\n", "\r\n")


def uniform_windows(text: str) -> bool:
    """Whether every line ends with CR LF; the new text gets the same ends then, however the model wrote it."""
    return "\r\n" in text and text.count("\n") == text.count("\r\n")


@define
class _Places:
    """The lines of a file, and the places in it that hunks have taken so far."""

    lines: list[str]
    hints: bool
    _taken: list[tuple[int, Hunk]] = field(factory=list[tuple[int, Hunk]])
    _drift: int = 0
    """Lines between the place of the last hunk and the place that its header names."""

    @cached_property
    def bare(self) -> list[str]:
        """The lines without the white space at their ends."""
        return [line.rstrip() for line in self.lines]

    def take(self, hunk: Hunk) -> None:
        """Find the hunk's place. Raises `ToolFailedError` where there is none, or more than one."""
        at = self._place(hunk) if hunk.old else self._insertion(hunk)
        self._taken.append((at, hunk))
        if hunk.at is not None:
            self._drift = at - hunk.at

    def applied(self) -> str:
        """The text with all hunks in their places."""
        done: list[str] = []
        after = 0
        for at, hunk in sorted(self._taken, key=lambda taken: taken[0]):
            done += self.lines[after:at]
            after = at + len(hunk.old)
            done += self._replaced(hunk, self.lines[at:after], last=after == len(self.lines))
        return "".join(done + self.lines[after:])

    def _replaced(self, hunk: Hunk, there: list[str], *, last: bool) -> list[str]:
        """The hunk's new lines; context stays as the file has it."""
        loose, old = there != hunk.old, iter(there)
        windows = loose and all(line.endswith("\r\n") for line in there)
        new: list[str] = []
        for sign, text in hunk.lines:
            kept = text if sign == "+" else next(old)
            if sign == "+" and windows and not text.endswith("\r\n"):
                kept = text.removesuffix("\n") + "\r\n"
            if sign != "-":
                new.append(kept)
        if loose and last and not there[-1].endswith("\n"):  # the patch did not say so: the file's end stays
            new = [line if line.endswith("\n") else f"{line}\n" for line in new]
            new[-1:] = [line.rstrip("\r\n") for line in new[-1:]]
        if not last and any(not line.endswith("\n") for line in new):
            raise ToolFailedError(f"Hunk {hunk.number} of the patch ends without a newline in the middle of the file.")
        return new

    def _insertion(self, hunk: Hunk) -> int:
        at = len(self.lines) if hunk.at_end or not self.lines else hunk.at
        if at is None:
            raise ToolFailedError(f"Hunk {hunk.number} of the patch adds lines without one beside them. Give context.")
        at += 0 if hunk.at is None or hunk.at_end else self._drift
        if not 0 <= at <= len(self.lines) or any(one < at < one + len(other.old) for one, other in self._taken):
            raise ToolFailedError(f"Hunk {hunk.number} adds lines after line {hunk.at}, which does not exist.")
        if at and not self.lines[at - 1].endswith("\n"):
            raise ToolFailedError(
                f"Hunk {hunk.number} of the patch adds lines after a last line that has no newline. Give that line as "
                "context, with '\\ No newline at end of file' below it."
            )
        return at

    def _place(self, hunk: Hunk) -> int:
        old = hunk.old
        found = _found(self.lines, old) or _found(self.bare, [line.rstrip() for line in old])
        free = [
            at for at in found if all(at + len(old) <= one or at >= one + len(other.old) for one, other in self._taken)
        ]
        if not free:
            there = (
                "fits only where another hunk changes the same lines; make one hunk of the two."
                if found
                else (f"does not fit. {nearest(''.join(self.lines), ''.join(old))}")
            )
            raise ToolFailedError(f"Hunk {hunk.number} of the patch {there}")
        ended = self._taken[-1][0] + len(self._taken[-1][1].old) if self._taken else 0
        return self._choice(hunk, [at for at in free if at >= ended] or free)

    def _choice(self, hunk: Hunk, found: list[int]) -> int:
        """The one place, or the one that the hints name. Raises `ToolFailedError` where they leave a choice."""
        if hunk.at_end:
            found = [at for at in found if at + len(hunk.old) == len(self.lines)] or found
        if len(found) > 1 and hunk.at is not None and self.hints:
            wanted = hunk.at + self._drift
            found = sorted(found, key=lambda at: abs(at - wanted))
            if abs(found[0] - wanted) * CLEARLY < abs(found[1] - wanted):
                return found[0]
        within = found if len(found) == 1 or not (self.hints and hunk.sections) else self._within(hunk.sections, found)
        if len(within) == 1:
            return within[0]
        lines = " and ".join(str(at + 1) for at in sorted(found[:2]))
        raise ToolFailedError(
            f"Hunk {hunk.number} of the patch fits equally well at lines {lines}. Give more context, or the name of "
            "its function or class after @@."
        )

    def _within(self, sections: tuple[str, ...], found: list[int]) -> list[int]:
        """The places in the named section, which is as deep as it is indented; else those after where it begins."""
        spans = [(0, len(self.bare))]
        for section in sections:
            spans = [(at, self._block_end(at, stop)) for span in spans for at, stop in self._begins(section, *span)]
        inside = [at for at in found if any(start <= at < stop for start, stop in spans)]
        return inside or [at for at in found if spans and at >= spans[0][0]]

    def _begins(self, section: str, start: int, stop: int) -> list[tuple[int, int]]:
        lines = [(at, self.bare[at].strip()) for at in range(start, stop)]
        same = [(at, stop) for at, line in lines if line == section]
        return same or [(at, stop) for at, line in lines if line.startswith(section)]

    def _block_end(self, start: int, stop: int) -> int:
        depth = _depth(self.bare[start])
        ends = (at for at in range(start + 1, stop) if self.bare[at] and _depth(self.bare[at]) <= depth)
        return next(ends, stop)


def _found(lines: list[str], wanted: list[str]) -> list[int]:
    """Every place of those lines."""
    size = len(wanted)
    return [at for at, line in enumerate(lines) if line == wanted[0] and lines[at : at + size] == wanted]


def _depth(line: str) -> int:
    return len(line) - len(line.lstrip())
