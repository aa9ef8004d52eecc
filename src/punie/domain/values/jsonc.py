"""JSON as people write it into files of settings: with comments, and with a comma after the last item."""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import NoReturn, TypeAlias

Parsed: TypeAlias = "dict[str, Parsed] | list[Parsed] | str | float | bool | None"

# What begins is always matched, if need be to the end: else a file of nothing but beginnings takes for ever.
_STRING = r'"(?:[^"\\]|\\.)*+"?'
_COMMENT = re.compile(rf"({_STRING})|//[^\n\r]*|/\*.*?(?:\*/|\Z)", re.DOTALL)
_LAST_COMMA = re.compile(rf"({_STRING})|,(?=\s*[}}\]])", re.DOTALL)


class Twice(dict[str, Parsed]):
    """An object some of whose keys were written more than once: `again` names those; the last value stands."""

    again: frozenset[str] = frozenset()


def parse_jsonc(text: str) -> Parsed:
    """The value, whose objects are `Twice` where a key is repeated. Raises `ValueError` with line and column.

    A byte order mark is no matter. NaN and the infinities are no JSON.
    """
    plain = _COMMENT.sub(_blank, text.removeprefix("\ufeff"))
    plain = _LAST_COMMA.sub(_blank, plain)
    try:
        parsed: Parsed = json.loads(plain, object_pairs_hook=_object, parse_constant=_no_number)
    except RecursionError as error:
        raise ValueError("it nests too deeply") from error
    return parsed


def says_nothing(text: str) -> bool:
    """Whether there is no value in it: blanks and comments alone."""
    return not _COMMENT.sub(_blank, text.removeprefix("\ufeff")).strip()


def _blank(match: re.Match[str]) -> str:
    """A string stays; anything else becomes blanks, so that lines and columns stay what they are."""
    if match[1] is not None:
        return match[1]
    return "".join(char if char in "\r\n" else " " for char in match[0])


def _object(pairs: list[tuple[str, Parsed]]) -> dict[str, Parsed]:
    made = dict(pairs)
    if len(made) == len(pairs):
        return made
    twice = Twice(made)
    counts = Counter(key for key, _ in pairs)
    twice.again = frozenset(key for key, count in counts.items() if count > 1)
    return twice


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"{text} is not JSON")
