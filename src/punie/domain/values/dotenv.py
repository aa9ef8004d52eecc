"""Files of variables (`.env`), as an `envFile` names them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

_LINE: Final = re.compile(
    r"""[ \t]*+
    (?:(?:export[ \t]++)?(?P<name>[A-Za-z_][A-Za-z0-9_.-]*+)[ \t]*+=[ \t]*+
       (?:'(?P<single>[^']*+)' | "(?P<double>(?:[^"\\]|\\.)*+)" | (?P<plain>(?!['"])[^\n]*+))
    )?
    [ \t]*+(?:\#[^\n]*+)?(?:\n|\Z)""",
    re.VERBOSE | re.DOTALL,
)
_COMMENT: Final = re.compile(r"(?:^|[ \t])#.*")
_ESCAPE: Final = re.compile(r"\\(.)", re.DOTALL)
_ESCAPES: Final = {"n": "\n", "r": "\r", "t": "\t"}


class DotenvError(Exception):
    """A line that is none of the form; the message names its number, never what it says."""


def parse_dotenv(text: str) -> Mapping[str, str]:
    r"""The variables in `NAME=VALUE` lines; of two with one name the later counts. Raises `DotenvError`.

    A line may begin with `export`; empty lines and those that begin with `#` are nothing. Within single quotes
    everything stands for itself; within double quotes `\n`, `\r` and `\t` are what they are elsewhere, and after any
    other backslash a character stands for itself; both kinds may go over several lines. Without quotes a value ends
    before ` #` and has no blanks around it. No variable is put in.
    """
    text = text.removeprefix("\ufeff").replace("\r\n", "\n")
    found: dict[str, str] = {}
    at = 0
    while at < len(text):
        match = _LINE.match(text, at)
        if match is None:
            raise DotenvError(f"line {text.count(chr(10), 0, at) + 1} is not NAME=VALUE")
        if match["name"] is not None:
            found[match["name"]] = _value(match)
        at = match.end()
    return found


def _value(match: re.Match[str]) -> str:
    if match["plain"] is not None:
        return _COMMENT.sub("", match["plain"]).strip()
    if match["double"] is not None:
        return _ESCAPE.sub(lambda escape: _ESCAPES.get(escape[1], escape[1]), match["double"])
    return match["single"]
