"""Text from models, IDEs and programs, made safe to show to a person ("display-safe" in docs/interfaces.md).

Such text may carry characters that a person does not see but a terminal obeys: escape sequences, marks that reverse
the direction of writing, zero-width letters. None of them may reach a screen through Punie.
"""

from __future__ import annotations

import re
import unicodedata

_UNSAFE = frozenset({"Cc", "Cf", "Zl", "Zp", "Cs"})
_LINE_ENDS = re.compile("\r\n|[\r\x0b\x0c\x85\u2028\u2029]")
_COLOURS_AND_CURSOR = re.compile("(?:\x1b\\[|\x9b)[0-9;:?]{0,32}[ -/]?[@-~]")
_KEPT = "\n\t"


def display_safe(text: str) -> str:
    """The text without any character of the categories Cc (but newline and tab), Cf, Zl and Zp, and without surrogates.

    Every kind of line end becomes a newline; sequences that set colours or move the cursor go as a whole. Use it where
    the text is read, and `display_exact` where a person decides on it.
    """
    if _is_safe(text):
        return text
    text = _COLOURS_AND_CURSOR.sub("", _LINE_ENDS.sub("\n", text))
    return "".join(char for char in text if _is_safe(char))


def display_exact(text: str) -> str:
    """As safe as `display_safe`, but nothing is dropped: every unsafe character is written out, as `<U+202E>`."""
    if _is_safe(text):
        return text
    return "".join(char if _is_safe(char) else f"<U+{ord(char):04X}>" for char in text)


def display_output(text: str) -> str:
    """A program's output, as safe as `display_exact`: colours are dropped, line ends become newlines."""
    if _is_safe(text):
        return text
    return display_exact(_COLOURS_AND_CURSOR.sub("", _LINE_ENDS.sub("\n", text)))


def _is_safe(text: str) -> bool:
    if text.isprintable():
        return True
    return all(char in _KEPT or unicodedata.category(char) not in _UNSAFE for char in text)


def one_line(text: str, limit: int = 160) -> str:
    """As `display_exact`, on one line, cut at `limit` characters: for titles."""
    if len(text) <= limit and text.isprintable() and "  " not in text and text == text.strip(" "):
        return text  # the usual case, and a call has half a dozen titles
    line = " ".join(display_exact(text).split())
    return line if len(line) <= limit else f"{line[: limit - 1]}…"
