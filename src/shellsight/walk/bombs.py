"""Functions that start themselves over and over."""

from __future__ import annotations

import re

from shellsight.line import Command, Compound, Pipeline, Script, Simple

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
