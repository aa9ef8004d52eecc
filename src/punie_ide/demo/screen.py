"""The demo's screen: lines and flowing text, eighty columns at most, colour only where it is welcome."""

from __future__ import annotations

import io
import os
import shutil
import sys
import textwrap
from collections.abc import Callable
from typing import TextIO

from punie.api import display_safe

WIDTH = 80
_CODES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "cyan": "36"}


class _Nowhere(io.StringIO):
    """Takes everything and keeps nothing."""

    def write(self, text: str, /) -> int:
        return len(text)


class Screen:
    """Prints to one text stream; everything goes through `display_safe`, whoever wrote it."""

    def __init__(self, out: TextIO | None = None) -> None:
        self._out = sys.stdout if out is None else out
        is_terminal = self._out.isatty()
        self._colour = is_terminal and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
        self.width = min(WIDTH, shutil.get_terminal_size((WIDTH, 24)).columns) if is_terminal else WIDTH
        self._column = self._blanks = 0
        self._indent = ""
        self._at_start = False

    # -- whole lines -----------------------------------------------------------------------------------------------

    def line(self, text: str = "", style: str = "", *, indent: str = "") -> None:
        """A text of one or more paragraphs, wrapped; every line keeps the indent."""
        self.end_flow()
        for paragraph in display_safe(text).split("\n"):
            wrapped = textwrap.wrap(
                paragraph, self.width, initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False
            )
            for part in wrapped or [""]:
                self._print(part, style)

    def cut(self, text: str, style: str = "", *, indent: str = "") -> None:
        """One line of code or output as it is, cut at the edge."""
        self.end_flow()
        safe = indent + display_safe(text).replace("\n", " ").expandtabs(4)
        self._print(safe if len(safe) <= self.width else safe[: self.width - 1] + "…", style)

    def lines(self, text: str, style: str = "", *, indent: str = "", limit: int) -> None:
        """The first lines of a text, each cut at the edge, and a word on how many are left out."""
        parts = display_safe(text).strip("\n").split("\n")
        for part in parts[:limit]:
            self.cut(part, style, indent=indent)
        if len(parts) > limit:
            self.cut(f"... {len(parts) - limit} more lines", "dim", indent=indent)

    # -- text as it streams ----------------------------------------------------------------------------------------

    def flow(self, text: str, label: str, style: str = "") -> None:
        """The next piece of a text that comes in pieces; `label` begins it, and its width indents the rest."""
        if not self._column:
            self._write(label, "bold")
            self._indent = " " * len(label)
            self._column = len(label)
        for number, paragraph in enumerate(display_safe(text).split("\n")):
            if number:
                self._break()
            for position, word in enumerate(paragraph.split(" ")):
                self._blanks += position > 0
                self._flow_word(word, style)
        self._guarded(self._out.flush)

    def _flow_word(self, word: str, style: str) -> None:
        """Blanks are held back until a word follows on the same line."""
        if not word:
            return
        if self._column + self._blanks + len(word) > self.width and self._column > len(self._indent):
            self._break()
        if self._at_start:
            self._write(self._indent, "")
        self._write(" " * self._blanks + word, style)
        self._column += self._blanks + len(word)
        self._blanks, self._at_start = 0, False

    def end_flow(self) -> None:
        """End the streaming text, if one is on the screen."""
        if self._column:
            self._write("\n", "")
            self._column = self._blanks = 0
            self._at_start = False

    def ask(self, text: str) -> None:
        """A prompt for the keyboard, without a newline."""
        self.end_flow()
        self._write(display_safe(text), "bold")
        self._guarded(self._out.flush)

    def _break(self) -> None:
        self._write("\n", "")
        self._column, self._blanks = len(self._indent), 0
        self._at_start = True

    def _print(self, text: str, style: str) -> None:
        self._write(text.rstrip(" "), style)
        self._write("\n", "")
        self._guarded(self._out.flush)

    def _write(self, text: str, style: str) -> None:
        coded = f"\x1b[{_CODES[style]}m{text}\x1b[0m" if self._colour and style and text else text
        encoding = self._out.encoding or "utf-8"
        self._guarded(lambda: self._out.write(coded.encode(encoding, "replace").decode(encoding)))

    def _guarded(self, write: Callable[[], object]) -> None:
        """`punie demo | head` closes our output early: the demo then goes on unseen instead of breaking half-way."""
        try:
            write()
        except BrokenPipeError:
            self._out = _Nowhere()
