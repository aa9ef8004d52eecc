"""Asking for leave where there is no IDE: at the terminal, or nobody."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Callable, Iterator
from typing import TextIO

import anyio.to_thread
from attrs import field, frozen

from punie.domain.permission.flow import Dismissed, PermissionOption, PermissionOutcome, PermissionQuestion, Selected
from punie.domain.permission.question_text import question_lines
from punie.domain.values.content import Diff
from punie.domain.values.display import display_exact
from punie.ports.permission import PermissionBroker

SHOWN_DIFF_LINES = 60


@frozen
class HeadlessBroker(PermissionBroker):
    """Nobody is there: a question that nobody can answer is a denial."""

    async def ask(self, question: PermissionQuestion) -> PermissionOutcome:
        return Dismissed(f"nobody is there to ask ({question.reason})")


@frozen
class ConsoleBroker(PermissionBroker):
    """Asks the person at the terminal, one question at a time; anything but a listed letter rejects.

    `read_line` blocks and runs in a thread of its own; an empty answer or the end of the input rejects.
    """

    read_line: Callable[[], str]
    out: TextIO = field(factory=lambda: sys.stderr)
    _turn: anyio.Lock = field(factory=anyio.Lock, init=False)

    async def ask(self, question: PermissionQuestion) -> PermissionOutcome:
        async with self._turn:
            letters = _letters(question.options)
            self.out.write("\n".join(_shown(question, letters)) + " ")
            self.out.flush()
            answer = await anyio.to_thread.run_sync(self.read_line, abandon_on_cancel=True)
        option = letters.get(answer.strip().lower())
        return Dismissed("the user did not allow it") if option is None else Selected(option.id)


def _letters(options: tuple[PermissionOption, ...]) -> dict[str, PermissionOption]:
    """A letter an option: the first of its name, as far as its first colon, that is still free; else its number."""
    letters: dict[str, PermissionOption] = {}
    for number, option in enumerate(options, start=1):
        words = option.name.partition(":")[0].lower().split()
        letter = next((word[0] for word in reversed(words) if word[0] not in letters), str(number))
        letters[letter] = option
    return letters


def _shown(question: PermissionQuestion, letters: dict[str, PermissionOption]) -> Iterator[str]:
    yield ""
    first, *more = display_exact(question.title).split("\n")
    yield f"? {first}"
    for line in more:
        yield f"  | {line}"  # a line of the title must not pass for a question of its own
    for line in question_lines(question):
        yield f"  {line}"
    for diff in question.diffs:
        yield from _diff_lines(diff)
    choices = "  ".join(f"[{letter}] {display_exact(option.name)}" for letter, option in letters.items())
    yield f"  {choices}  (Enter rejects)"


def _diff_lines(diff: Diff) -> Iterator[str]:
    path = display_exact(diff.path)
    lines = list(
        difflib.unified_diff((diff.old_text or "").splitlines(), diff.new_text.splitlines(), path, path, lineterm="")
    )
    if not lines:
        yield f"  {path}: no line of it changes"
    for line in lines[:SHOWN_DIFF_LINES]:
        yield f"  {display_exact(line)}"
    if len(lines) > SHOWN_DIFF_LINES:
        yield f"  ... {len(lines) - SHOWN_DIFF_LINES} more lines"
