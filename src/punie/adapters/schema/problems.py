"""Validation errors in words for a model: the field, and the value that was expected there."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, cast

from punie.domain.values.json_value import EMPTY_OBJECT, array_in, object_in

if TYPE_CHECKING:
    from jsonschema_rs import ValidationError

PROBLEM_LIMIT_CHARS = 200
_BRANCHES = 4
_NAMES = 8
_NAME_CHARS = 40


def in_words(error: ValidationError, schema: object = EMPTY_OBJECT, arguments: object = EMPTY_OBJECT) -> str:
    """One sentence with the path of the field and the expected value, without the value that the model sent.

    `schema` and `arguments` are those of the error and tell which fields are possible.
    """
    return shortened(_at(error.instance_path, _expected(error, schema, arguments)))


def shortened(text: str) -> str:
    """The text, cut to `PROBLEM_LIMIT_CHARS`."""
    return text if len(text) <= PROBLEM_LIMIT_CHARS else text[: PROBLEM_LIMIT_CHARS - 4] + " ..."


def _at(path: Sequence[str | int], what: str) -> str:
    where = _field(path)
    return f"{where}: {what}" if where else what


def _field(path: Sequence[str | int]) -> str:
    shown = ""
    for part in path:
        if isinstance(part, int):
            shown += f"[{part}]"
        else:
            shown += f".{part}" if shown else part
    # The end of a long path tells fields apart.
    return shown if len(shown) <= 100 else "..." + shown[-97:]


def _expected(error: ValidationError, schema: object, arguments: object) -> str:
    kind = error.kind
    around = _inside(schema, error.schema_path[:-1])
    match kind.name:
        case "anyOf" | "oneOf":
            return _alternatives(error, schema, arguments)
        case "required":
            return _missing(str(getattr(kind, "property", "a property")), around)
        case "additionalProperties" | "unevaluatedProperties":
            names = cast("Sequence[object]", getattr(kind, "unexpected", ()))
            return _unexpected(names, around, complete=kind.name == "additionalProperties")
        case "falseSchema" if error.schema_path[-1:] == ["additionalProperties"]:
            return _unexpected(tuple(object_in(_inside(arguments, error.instance_path))), around)
        case "falseSchema":
            return "nothing is expected here; leave it out"
        case _:
            return error.message.partition("\n")[0]


def _alternatives(error: ValidationError, schema: object, arguments: object) -> str:
    """The expected value of each alternative, with the path from this field to a deeper one."""
    branches = cast("list[list[ValidationError]]", getattr(error.kind, "context", None) or [])
    own = len(error.instance_path)
    options = [
        _at(branch[0].instance_path[own:], _expected(branch[0], schema, arguments))
        for branch in branches[:_BRANCHES]
        if branch
    ]
    if not options:
        return "it fits more than one of the alternatives; exactly one is expected"
    return "none of the alternatives fits: " + "; or ".join(options)


def _missing(name: str, around: object) -> str:
    kind = object_in(object_in(object_in(around).get("properties")).get(name)).get("type")
    return f"{name!r} is required ({kind})" if isinstance(kind, str) else f"{name!r} is required"


def _unexpected(names: Sequence[object], around: object, *, complete: bool = True) -> str:
    """The names that are not expected; `complete` says that no other part of the schema may name more fields."""
    known = tuple(object_in(object_in(around).get("properties")))
    patterns = tuple(object_in(object_in(around).get("patternProperties")))
    what = f"fields {_named(names)} are" if len(names) > 1 else f"field {_named(names)} is"
    if known:
        also = f", or a name like {_named(patterns)}" if patterns else ""
        return f"{what} not expected; expected one of {_named(known)}{also}"
    if patterns:
        return f"{what} not expected; expected a name like {_named(patterns)}"
    return f"{what} not expected; there are no fields to give" if complete else f"{what} not expected"


def _named(names: Iterable[object]) -> str:
    """The names in quotes, `_NAMES` of them at most."""
    every = list(names)
    shown = [repr(str(name)[:_NAME_CHARS]) for name in every[:_NAMES]]
    return ", ".join(shown) + (", ..." if len(every) > _NAMES else "")


def _inside(value: object, path: Sequence[str | int]) -> object:
    """The value at a path; None where there is none."""
    for part in path:
        if isinstance(part, int) and (several := array_in(value)):
            value = several[part] if part < len(several) else None
        else:
            value = object_in(value).get(str(part))
    return value
