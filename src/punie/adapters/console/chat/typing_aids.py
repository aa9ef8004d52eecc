"""Aids for a person who types in `punie chat`: completion, and the history of prompts."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from attrs import define
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.history import History, InMemoryHistory

from punie.domain.session.prompt_files import CommandInfo
from punie.domain.values.display import one_line

KEPT_ENTRIES = 1_000
KEPT_BYTES = 4 * 1_048_576
ENTRY_CHARS = 10_000
"""A longer prompt is not kept."""

META_CHARS = 60


@define(eq=False)
class WordCompleter(Completer):
    """Completes commands at the beginning of the line, values behind `/model` and `/mode`, and files behind an `@`.

    `values` gives the values that may follow a command, and `files` the mentions of files that fit what is typed.
    """

    commands: Callable[[], Iterable[CommandInfo]]
    values: Callable[[str], Iterable[str]]
    files: Callable[[str], Iterable[str]]

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterator[Completion]:
        before = document.text_before_cursor
        if before.startswith("/") and " " not in before and "\n" not in before:
            yield from self._commands(before[1:])
            return
        word = before.rpartition(" ")[2].rpartition("\n")[2]
        if word.startswith("@"):
            for mention in self.files(word[1:].removeprefix('"')):
                yield Completion(f"{mention} ", start_position=-len(word), display=one_line(mention, META_CHARS))
        elif before.startswith("/"):
            command, _, typed = before[1:].partition(" ")
            for value in self.values(command):
                if value.startswith(typed):
                    yield Completion(value, start_position=-len(typed), display=one_line(value, META_CHARS))

    def _commands(self, typed: str) -> Iterator[Completion]:
        for one in self.commands():
            if one.name.startswith(typed):
                about = one_line(one.description, META_CHARS)
                text = f"/{one.name} " if one.hint else f"/{one.name}"
                yield Completion(text, start_position=-len(typed) - 1, display=f"/{one.name}", display_meta=about)


class PromptHistory(History):
    """The prompts of this user in a file of JSON lines, readable by its owner only.

    A prompt that begins with a space is not kept, as in a shell. A file that cannot be read or written is no failure:
    the prompts of this run are there all the same.
    """

    def __init__(self, file: Path) -> None:
        super().__init__()
        self._file = file

    def load_history_strings(self) -> Iterator[str]:
        """The prompts, the latest first."""
        try:
            with self._file.open("rb") as opened:
                opened.seek(max(0, self._file.stat().st_size - KEPT_BYTES))
                lines = opened.read(KEPT_BYTES).split(b"\n")
        except (OSError, ValueError):
            return
        for line in reversed(lines[-KEPT_ENTRIES:]):
            text = _entry(line)
            if text:
                yield text

    def store_string(self, string: str) -> None:
        """Keep one prompt."""
        if string.startswith(" ") or len(string) > ENTRY_CHARS:
            return
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_NOFOLLOW", 0)
        try:
            self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            opened = os.open(self._file, flags, 0o600)
            try:
                os.write(opened, f"{json.dumps(string)}\n".encode())
            finally:
                os.close(opened)
        except OSError:
            return


def history_in(file: Path | None) -> History:
    """The history in that file; without one it ends with the conversation."""
    return InMemoryHistory() if file is None else PromptHistory(file)


def _entry(line: bytes) -> str:
    try:
        text = json.loads(line)
    except (ValueError, RecursionError):
        return ""
    return text if isinstance(text, str) else ""
