"""Functions that start themselves over and over, and loops that leave more processes behind than a machine holds."""

from __future__ import annotations

import re

from shellsight.line import Command, Compound, CompoundKind, Glob, Opaque, Pipeline, Script, Simple, Substitution, Word

ENDLESS = 1_000_000
"""The rounds that a loop counts for where nothing in the line bounds them."""
MOST_AT_ONCE = 300
"""Processes that a line may put into the background: more of them are a question."""
LEFT_BEHIND = "a loop that leaves its processes behind"
_MATCHES = 16
REPEATING = frozenset({"xargs", "find", "gfind", "fd", "fdfind", "watch", "entr", "parallel", "hyperfine"})
"""Programs that run a command for each word that they are fed, or again and again."""


def rounds(loop: Compound) -> int:
    """How often the body of a loop may run: a `while` without end, a `for` once for each of its words."""
    if loop.kind in {CompoundKind.WHILE, CompoundKind.UNTIL}:
        return ENDLESS
    return max(1, sum(_values(word) for word in loop.words))


def _values(word: Word) -> int:
    kinds = {type(piece) for piece in word.pieces}
    return ENDLESS if kinds & {Substitution, Opaque} else _MATCHES if Glob in kinds else 1


_WRITTEN = re.compile(r"([^\s(){}|&;]{1,40})\s*\(\)\s*\{[^}]{0,400}\1\s*\|\s*\1")


def looks_like_bomb(text: str) -> bool:
    """Whether text that no parser took holds the classic: a function that pipes itself into itself."""
    return "()" in text and _WRITTEN.search(text[:2_000]) is not None


def calls_itself(script: Script, name: str) -> bool:
    """Whether the body of a function starts that function side by side with something: in a pipeline or with `&`."""
    return any(_starts(step.command, name, aside=step.separator == "&") for step in script.steps[:200])


def _starts(command: Command, name: str, *, aside: bool, depth: int = 0) -> bool:
    if depth > 20:
        return False
    if isinstance(command, Simple):
        return aside and bool(command.words) and command.words[0].text == name
    if isinstance(command, Pipeline):
        both = aside or len(command.stages) > 1
        return any(_starts(stage, name, aside=both, depth=depth + 1) for stage in command.stages)
    if isinstance(command, Compound):
        return any(
            _starts(step.command, name, aside=aside or step.separator == "&", depth=depth + 1)
            for script in command.scripts
            for step in script.steps[:200]
        )
    return False
