"""Two readings of a line that must agree.

The first reading follows POSIX and refuses every form that some shell reads in its own way; it makes the tree. The bash
grammar of tree-sitter reads the same line independently. Where that grammar finds a fault, or commands, words,
substitutions or comments in other places, the line counts as not understood.
"""

from __future__ import annotations

import unicodedata

from shellsight.line import Script, Step, Unreadable
from shellsight.parser.commands import read_line, script
from shellsight.parser.scan import NotUnderstood, Scan, Seen
from shellsight.parser.second_reading import SecondReading
from shellsight.surroundings import LINE_LIMIT_BYTES


class TwoReadings:
    """Reads lines in both ways; may be shared between threads, lives as long as the parser it serves."""

    def __init__(self) -> None:
        self._second = SecondReading()

    def load(self) -> None:
        """Load the grammar now."""
        self._second.load()

    def parse(self, line: str) -> Script:
        """The line's commands; see `ShellParser.parse`.

        Where the reading fails midway, the commands before that place are there too, and `Unreadable` is the last.
        """
        steps: list[Step] = []
        scan = Scan(line, len(line), Seen(), script)
        try:
            check_text(line)
            read_line(scan, steps)
            self._second.compare(line, scan.seen)
        except NotUnderstood as doubt:
            steps.append(Step(Unreadable(line, doubt.why)))
            return Script(tuple(steps), readable=False)
        return Script(tuple(steps))


def check_text(line: str) -> None:
    """Refuse a line with a character that no line may hold, quoted or not, and a line that is too long.

    Raises:
        NotUnderstood: the line is one of these.
    """
    if len(line) > LINE_LIMIT_BYTES or (not line.isascii() and len(line.encode(errors="replace")) > LINE_LIMIT_BYTES):
        raise NotUnderstood(f"more than {LINE_LIMIT_BYTES} bytes")
    if line.startswith(("-", "+")):
        raise NotUnderstood("a line that begins like an option, which the shell takes for one")
    for mark in dict.fromkeys(line):
        if mark not in "\t\n" and unicodedata.category(mark) in {"Cc", "Cs"}:
            raise NotUnderstood(f"the control character U+{ord(mark):04X}")
