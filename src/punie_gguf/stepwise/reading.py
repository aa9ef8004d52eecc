"""Reads a step while the model writes it: text as it comes, calls once they are whole."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias, cast

from attrs import define, field, frozen

from punie_gguf.stepwise.schema import ANSWER, ARGUMENTS, CALLS, SAY, TOOL


@frozen
class Told:
    """The next piece of what the model says."""

    text: str


@frozen
class Called:
    """A call, whole; `arguments` is the JSON text as the model wrote it."""

    tool: str
    arguments: str


Piece: TypeAlias = Told | Called

_SPACE: Final = " \t\r\n"
_SHORT: Final = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", '"': '"', "\\": "\\", "/": "/"}
_HIGH: Final = range(0xD800, 0xDC00)
_LOW: Final = range(0xDC00, 0xE000)


@define
class StepReader:
    """Takes one answer character by character; lives as long as it.

    An answer that is no JSON object is text from its beginning to its end: nothing that a model wrote is lost.
    """

    whole: bool = field(default=False, init=False)
    """Whether the step has come to its end."""

    _state: Callable[[str], None] = field(init=False)
    _said: list[str] = field(factory=list[str], init=False)
    _calls: list[Called] = field(factory=list[Called], init=False)
    _key: str = field(default="", init=False)
    _raw: list[str] = field(factory=list[str], init=False)
    _depth: int = field(default=0, init=False)
    _quoted: bool = field(default=False, init=False)
    _escape: str = field(default="", init=False)
    _high: str = field(default="", init=False)
    _values: dict[str, str] = field(factory=dict[str, str], init=False)

    def __attrs_post_init__(self) -> None:
        self._state = self._opening

    def feed(self, text: str) -> list[Piece]:
        """The next characters; what they make known."""
        for character in text:
            self._state(character)
        told = "".join(self._said)
        pieces: list[Piece] = [Told(told)] if told else []
        pieces += self._calls
        self._said.clear()
        self._calls.clear()
        return pieces

    def _opening(self, character: str) -> None:
        if character == "{":
            self._state = self._between
        elif character not in _SPACE:
            self._state = self._plain
            self.whole = True  # plain text is whole wherever it ends
            self._plain(character)

    def _plain(self, character: str) -> None:
        self._said.append(character)

    def _between(self, character: str) -> None:
        """Outside of keys and values of the step's object."""
        if character == '"':
            self._raw = [character]
            self._state = self._naming
        elif character == "}":
            self._end()

    def _naming(self, character: str) -> None:
        self._raw.append(character)
        if self._closes_string(character):
            self._key = str(_parsed("".join(self._raw)))
            self._state = self._value

    def _value(self, character: str) -> None:
        """Behind a key: its value begins."""
        if character in _SPACE or character == ":":
            return
        if character == '"' and self._key in {ANSWER, SAY}:
            self._state = self._telling
            return
        self._raw, self._depth = [], 0
        self._state = self._keeping
        self._keeping(character)

    def _telling(self, character: str) -> None:
        """In a string that is passed on as it comes."""
        if self._escape:
            self._unescape(character)
        elif character == "\\":
            self._escape = character
        elif character == '"':
            self._say("")
            self._state = self._between
        else:
            self._say(character)

    def _unescape(self, character: str) -> None:
        self._escape += character
        if self._escape[1] != "u":
            self._escape = ""
            self._say(_SHORT.get(character, character))
        elif len(self._escape) == 6:
            code, self._escape = _code(self._escape[2:]), ""
            if self._high and code in _LOW:
                pair = 0x10000 + ((ord(self._high) - 0xD800) << 10) + (code - 0xDC00)
                self._high = ""
                self._said.append(chr(pair))
            elif code in _HIGH:
                self._say("")
                self._high = chr(code)
            else:
                self._say("\ufffd" if code in _LOW else chr(code))

    def _say(self, text: str) -> None:
        """Pass it on; half of a character that stays alone before it is said as such."""
        if self._high:
            self._said.append("\ufffd")
            self._high = ""
        self._said.append(text)

    def _keeping(self, character: str) -> None:
        """In a value that is of use only whole."""
        if not self._quoted and self._depth == 0 and character in ",}":
            self._keep()
            self._between(character)
            return
        self._raw.append(character)
        if self._quoted:
            self._closes_string(character)
        elif character == '"':
            self._quoted = True
        elif character in "{[":
            self._depth += 1
        elif character in "}]":
            self._depth -= 1

    def _closes_string(self, character: str) -> bool:
        """Go on within a string of which nothing is passed on; whether the character is its end."""
        if self._escape:
            self._escape = ""
        elif character == "\\":
            self._escape = character
        elif character == '"':
            self._quoted = False
            return True
        return False

    def _keep(self) -> None:
        self._values[self._key] = "".join(self._raw).strip()
        self._state = self._between

    def _end(self) -> None:
        self.whole = True
        self._state = _over
        if TOOL in self._values:
            self._call(_parsed(self._values[TOOL]), self._values.get(ARGUMENTS, "{}"))
        several = _parsed(self._values.get(CALLS, "[]"))
        for item in cast("list[object]", several) if isinstance(several, list) else []:
            if isinstance(item, Mapping):
                call = cast("Mapping[str, Any]", item)
                self._call(call.get(TOOL), json.dumps(call.get(ARGUMENTS, {}), ensure_ascii=False))

    def _call(self, tool: object, arguments: str) -> None:
        if isinstance(tool, str) and tool:
            self._calls.append(Called(tool, arguments))


def _over(_: str) -> None:
    """Behind the step: nothing counts."""


def _parsed(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _code(digits: str) -> int:
    try:
        return int(digits, 16)
    except ValueError:
        return 0xFFFD
