"""The page of messages, docs/reference/messages.md: what Punie says when something does not work, and what to do then.

The texts are those of the code: the errors of `punie.domain.errors` and the answers of a model's provider.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator

from punie.domain import errors
from punie.domain.errors import EngineError
from punie.domain.model.provider import ModelPlace, ProviderFailure, missing_variable, needs_package

_PLACE = ModelPlace("MODEL", "ADDRESS", "KEY", "SETTING")
_ANSWERS = ProviderFailure(_PLACE)
_FIELD = re.compile(r"\{e\.(\w+)[^}]*\}")
_INTRODUCTION = """\
Words in capitals stand for names, addresses and reasons. Search this page for the part of a message that does not
change. The same messages appear in the IDE's chat, at a terminal, and in the last line of `punie ask --json`, where
`code` is the first column of [errors](errors.md)."""


def messages_page(made: str) -> str:
    """The whole page; `made` is the note that it is generated."""
    model = ["| message | what to do |", "|---|---|", *(_row(error) for error in _of_models())]
    client = ["| message | code |", "|---|---|", *_of_errors(errors.ToldToClient)]
    tools = ["| message | code |", "|---|---|", *_of_errors(errors.ToldToModel)]
    parts = (
        "# Messages", made, _INTRODUCTION,
        "## The model does not answer", "\n".join(model),
        "## A session or a setting cannot be used", "\n".join(client),
        "## A tool could not do it", "The model reads these and goes on; a card shows them.", "\n".join(tools),
    )  # fmt: skip
    return "\n\n".join(parts) + "\n"


def _of_models() -> Iterator[EngineError]:
    yield missing_variable("MODEL", "VARIABLE")
    yield missing_variable("MODEL", "VARIABLE_URL")
    yield needs_package("MODEL", "COMMAND")
    answers: tuple[Callable[[], EngineError], ...] = (
        _ANSWERS.auth, _ANSWERS.quota, lambda: _ANSWERS.rate_limit(None), _ANSWERS.overloaded, _ANSWERS.timeout,
        _ANSWERS.connection, _ANSWERS.not_found, _ANSWERS.context, _ANSWERS.filtered, _ANSWERS.rejected,
        _ANSWERS.server, _ANSWERS.other,
    )  # fmt: skip
    for answer in answers:
        yield answer()


def _of_errors(family: type[errors.PunieError]) -> Iterator[str]:
    """Each error with a sentence of its own that says more than its fields."""
    for kind in vars(errors).values():
        if not inspect.isclass(kind) or not issubclass(kind, family) or "sentence" not in vars(kind):
            continue
        said = _FIELD.sub(lambda field: field[1].upper(), kind.sentence)
        if said != said.upper():
            yield f"| {_cell(said)} | `{kind.code}` |"


def _row(error: EngineError) -> str:
    return f"| {_cell(error.cause)} | {_cell(error.next_step)} |"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
