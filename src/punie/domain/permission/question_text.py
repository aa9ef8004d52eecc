"""The words of a question, the same on every surface.

A card may be cut, and a client may show the text alone: this text has everything that a person decides on, whole and
display-safe.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from punie.domain.permission.flow import PermissionQuestion
from punie.domain.values.display import display_exact
from punie.domain.values.json_value import JsonObject, thaw

SHOWN_ARGUMENT_CHARS = 4_000
SHOWN_PLAN_CHARS = 20_000


def question_lines(question: PermissionQuestion) -> Iterator[str]:
    """The plan, the reason with the rule that asks, the places, the arguments where nothing else shows them.

    The last lines are the grant that the option to always allow would store. Every line is display-safe and has no
    line end in it.
    """
    for line in _lines(_bounded(question.about, SHOWN_PLAN_CHARS)):
        yield f"| {line}"
    asks = f" (asked by {question.rule})" if question.rule else ""
    yield from _lines(f"{question.reason}{asks}")
    if question.directory:
        yield f"in {_one(question.directory)}"
    shown = {question.directory, *(diff.path for diff in question.diffs)}
    for path in question.locations:
        if path not in shown:
            yield f"at {_one(path)}"
    if not question.diffs and not question.about:
        yield from _argument_lines(question.raw_input or {})
    yield from _lines(question.would_store)


def question_markdown(question: PermissionQuestion) -> str:
    """The same lines as a code block: a client shows text as Markdown, in which words could be hidden."""
    text = "\n".join(question_lines(question))
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}text\n{text}\n{fence}"


def _argument_lines(arguments: JsonObject) -> Iterator[str]:
    for name, value in arguments.items():
        text = json.dumps(thaw(value), ensure_ascii=False)
        yield f"{_one(name)}: {_one(_bounded(text, SHOWN_ARGUMENT_CHARS))}"


def _bounded(text: str, limit: int) -> str:
    rest = len(text) - limit
    return text if rest <= 0 else f"{text[:limit]} ... {rest} more characters"


def _lines(text: str) -> list[str]:
    return display_exact(text).split("\n") if text else []


def _one(text: str) -> str:
    return display_exact(text).replace("\n", "<U+000A>")
