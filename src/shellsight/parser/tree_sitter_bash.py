"""The shell parser: loads what reads lines with the first of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shellsight.surroundings import ShellParser

if TYPE_CHECKING:
    from shellsight.line import Script


class TreeSitterBashParser(ShellParser):
    """Reads lines; may be shared between threads, lives as long as the process.

    Both readings are loaded by the first line, tree-sitter with them, or by `warm_up`, which may run in a thread: a
    session without commands does without half a megabyte, and another two for the grammar.
    """

    def warm_up(self) -> None:
        """Load all of it now."""
        from shellsight.parser.two_readings import grammar

        grammar()

    def parse(self, line: str) -> Script:
        """The line's commands; see `ShellParser.parse`."""
        from shellsight.parser.two_readings import parse

        return parse(line)
