"""The shell parser: loads what reads lines with the first of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shellsight.surroundings import ShellParser

if TYPE_CHECKING:
    from shellsight.line import Script
    from shellsight.parser.two_readings import TwoReadings


class TreeSitterBashParser(ShellParser):
    """Reads lines; may be shared between threads, lives as long as the process.

    Both readings are loaded by the first line, tree-sitter with them, or by `warm_up`, which may run in a thread: a
    session without commands does without half a megabyte, and another two for the grammar.
    """

    def __init__(self) -> None:
        self._readings: TwoReadings | None = None

    def warm_up(self) -> None:
        """Load all of it now."""
        self._both().load()

    def parse(self, line: str) -> Script:
        """The line's commands; see `ShellParser.parse`."""
        return self._both().parse(line)

    def _both(self) -> TwoReadings:
        if self._readings is None:
            from shellsight.parser.two_readings import TwoReadings

            self._readings = TwoReadings()
        return self._readings
