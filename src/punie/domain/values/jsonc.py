"""JSON as people write it into settings: with comments, and with a comma after the last item.

Such texts are changed by `mechanics/jsonc_editing.py`.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import NoReturn, TypeAlias

Parsed: TypeAlias = "dict[str, Parsed] | list[Parsed] | str | float | bool | None"

# A beginning is always matched, if need be to the end of the text: a file of beginnings alone would take for ever.
_STRING = r'"(?:[^"\\]|\\.)*+"?'
_COMMENT = re.compile(rf"({_STRING})|//[^\n\r]*|/\*.*?(?:\*/|\Z)", re.DOTALL)
_LAST_COMMA = re.compile(rf"({_STRING})|,(?=\s*[}}\]])", re.DOTALL)


class Twice(dict[str, Parsed]):
    """An object in which `again` names the keys that were written more than once; the last value counts."""

    again: frozenset[str] = frozenset()


def parse_jsonc(text: str) -> Parsed:
    """The value, whose objects are `Twice` where a key is repeated. Raises `ValueError` with line and column.

    A byte order mark is ignored. NaN and the infinities are refused: JSON has no such numbers.
    """
    plain = _COMMENT.sub(_blank, text.removeprefix("\ufeff"))
    plain = _LAST_COMMA.sub(_blank, plain)
    try:
        parsed: Parsed = json.loads(plain, object_pairs_hook=_of_pairs, parse_constant=no_number)
    except RecursionError as error:
        raise ValueError("it nests too deeply") from error
    return parsed


def says_nothing(text: str) -> bool:
    """Whether the text has no value: blanks and comments alone."""
    return not _COMMENT.sub(_blank, text.removeprefix("\ufeff")).strip()


def _blank(match: re.Match[str]) -> str:
    """A string stays; anything else becomes blanks, so that lines and columns do not move."""
    if match[1] is not None:
        return match[1]
    return "".join(char if char in "\r\n" else " " for char in match[0])


def _of_pairs(pairs: list[tuple[str, Parsed]]) -> dict[str, Parsed]:
    made = dict(pairs)
    if len(made) == len(pairs):
        return made
    twice = Twice(made)
    counts = Counter(key for key, _ in pairs)
    twice.again = frozenset(key for key, count in counts.items() if count > 1)
    return twice


def no_number(text: str) -> NoReturn:
    """Refuse NaN and the infinities, which Python's reader would take. Raises `ValueError`."""
    raise ValueError(f"{text} is not JSON")
