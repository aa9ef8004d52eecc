"""The person at the keyboard, for `--interactive`: lines from stdin, and answers to questions."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Awaitable, Callable

import anyio
from attrs import define, field

from punie_ide.demo.screen import Screen
from punie_ide.permission import Question

_CHUNK_BYTES = 4096

ReadLine = Callable[[], Awaitable["str | None"]]


@define
class Keyboard:
    """Reads lines from a descriptor without ever holding up the event loop or the exit; lives as long as the demo."""

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
    """Answers questions by number; anything else, and the end of the input, is a no."""

    screen: Screen
    read_line: ReadLine

    async def decide(self, question: Question) -> str | None:
        """The id of the option picked, or None."""
        numbered = "  ".join(f"{number} {option.name}" for number, option in enumerate(question.options, 1))
        self.screen.ask(f"    Your answer ({numbered}): ")
        answer = (await self.read_line() or "").strip()
        if answer.isdecimal() and 1 <= int(answer) <= len(question.options):
            return question.options[int(answer) - 1].id
        return next((option.id for option in question.options if not option.kind.allows), None)

    async def next_prompt(self, suggested: str | None) -> str | None:
        """What the person types; an empty line takes the suggestion, without one it ends the conversation."""
        self.screen.line()
        if suggested is not None:
            self.screen.line(f"Suggested (press Enter to take it): {suggested}", "dim")
        self.screen.ask("Your prompt (an empty line ends): " if suggested is None else "Your prompt: ")
        typed = await self.read_line()
        if typed is None:
            self.screen.line()
            return None
        return typed.strip() or suggested
