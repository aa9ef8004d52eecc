"""The terminal of the demo: its screen, and the person at the keyboard with `--interactive`."""

from __future__ import annotations

import os
import shutil
import stat
import sys
import textwrap
from collections.abc import Awaitable, Callable
from typing import TextIO

import anyio
from attrs import define, field

from punie.api import display_safe
from punie.mechanics.output import guarded
from punie.mechanics.questions import CHOICES_HINT, answer_later, asking, choices
from punie_ide.permission import Question

WIDTH = 80
_CODES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "cyan": "36"}


class Screen:
    """Prints to one text stream, all of it display-safe, in eighty columns at most, in colour on a terminal."""

    def __init__(self, out: TextIO | None = None) -> None:
        self._out = guarded(sys.stdout if out is None else out)
        is_terminal = self._out.isatty()
        self._colour = is_terminal and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
        self.width = min(WIDTH, shutil.get_terminal_size((WIDTH, 24)).columns) if is_terminal else WIDTH
        self._column = self._blanks = 0
        self._indent = ""
        self._at_start = False

    # -- whole lines -----------------------------------------------------------------------------------------------

    def line(self, text: str = "", style: str = "", *, indent: str = "") -> None:
        """Print a text of one or more paragraphs, wrapped with the indent before every line."""
        self.end_flow()
        for paragraph in display_safe(text).split("\n"):
            wrapped = textwrap.wrap(
                paragraph, self.width, initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False
            )
            for part in wrapped or [""]:
                self._print(part, style)

    def cut(self, text: str, style: str = "", *, indent: str = "") -> None:
        """Print one line of code or output unwrapped, cut at the edge."""
        self.end_flow()
        safe = indent + display_safe(text).replace("\n", " ").expandtabs(4)
        self._print(safe if len(safe) <= self.width else safe[: self.width - 1] + "…", style)

    def lines(self, text: str, style: str = "", *, indent: str = "", limit: int) -> None:
        """Print the first lines of a text, each cut at the edge, and the number of those left out."""
        parts = display_safe(text).strip("\n").split("\n")
        for part in parts[:limit]:
            self.cut(part, style, indent=indent)
        if len(parts) > limit:
            self.cut(f"... {len(parts) - limit} more lines", "dim", indent=indent)

    # -- text as it streams ----------------------------------------------------------------------------------------

    def flow(self, text: str, label: str, style: str = "") -> None:
        """Print the next piece of a streaming text, which starts with `label` and is indented by its width."""
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
        self._out.flush()

    def _flow_word(self, word: str, style: str) -> None:
        """Print a word after the blanks before it, which are held back until it fits on the same line."""
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
        """End a streaming text."""
        if self._column:
            self._write("\n", "")
            self._column = self._blanks = 0
            self._at_start = False

    def ask(self, text: str) -> None:
        """Print a prompt for the keyboard, without a newline."""
        self.end_flow()
        self._write(display_safe(text), "bold")
        self._out.flush()

    def _break(self) -> None:
        self._write("\n", "")
        self._column, self._blanks = len(self._indent), 0
        self._at_start = True

    def _print(self, text: str, style: str) -> None:
        self._write(text.rstrip(" "), style)
        self._write("\n", "")
        self._out.flush()

    def _write(self, text: str, style: str) -> None:
        self._out.write(f"\x1b[{_CODES[style]}m{text}\x1b[0m" if self._colour and style and text else text)


_CHUNK_BYTES = 4096

ReadLine = Callable[[], Awaitable["str | None"]]


@define
class Keyboard:
    """Reads lines from a descriptor without blocking the event loop or the exit; lives as long as the demo."""

    descriptor: int = 0
    _rest: bytes = field(default=b"", init=False)
    _ended: bool = field(default=False, init=False)

    async def read_line(self) -> str | None:
        """The next line without its end; None once the input has ended."""
        while b"\n" not in self._rest and not self._ended:
            chunk = await self._read()
            self._rest += chunk
            self._ended = not chunk
        line, newline, self._rest = self._rest.partition(b"\n")
        return line.decode("utf-8", "replace").rstrip("\r") if line or newline else None

    async def _read(self) -> bytes:
        if sys.platform == "win32":
            return await anyio.to_thread.run_sync(os.read, self.descriptor, _CHUNK_BYTES, abandon_on_cancel=True)
        if not stat.S_ISREG(os.fstat(self.descriptor).st_mode):
            await anyio.wait_readable(self.descriptor)
        return os.read(self.descriptor, _CHUNK_BYTES)


@define
class Person:
    """Answers questions as at the terminal of `punie ask`; Enter, and the end of the input, reject."""

    screen: Screen
    read_line: ReadLine

    async def decide(self, question: Question) -> str | None:
        """The id of the chosen option, or None."""
        options = question.options
        prompt, places = choices([(option.name, option.kind.allows) for option in options])
        answers: dict[str, str | None] = {word: options[place].id for word, place in places.items()}
        answers[""] = refused = next((option.id for option in options if not option.kind.allows), None)
        return await answer_later(
            asking(self.screen.ask, "", f"    Your answer: {prompt}", answers, refused, CHOICES_HINT), self._line
        )

    async def _line(self) -> str:
        typed = await self.read_line()
        return "" if typed is None else f"{typed}\n"

    async def next_prompt(self, suggested: str | None) -> str | None:
        """The next prompt; an empty line takes the suggestion, or ends the conversation where there is none."""
        self.screen.line()
        if suggested is not None:
            self.screen.line(f"Suggested (press Enter to take it): {suggested}", "dim")
        self.screen.ask("Your prompt (an empty line ends): " if suggested is None else "Your prompt: ")
        typed = await self.read_line()
        if typed is None:
            self.screen.line()
            return None
        return typed.strip() or suggested
