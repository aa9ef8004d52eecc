"""The place of a file that is the most like a text that is not in the file, and what differs there."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator
from difflib import SequenceMatcher
from itertools import accumulate

SCANNED_CHARS = 20_000_000
"""Characters that are looked through in all: the longer the file, the fewer words are looked for."""

KEYS = 60
"""Words of the text that are looked for in the file, the longest ones first."""

COMMON = 100
"""A word or line that occurs more often than this says nothing about the place."""

COMPARED_LINES = 80
SHOWN_LINES = 14
LINE_CHARS = 240
_SLACK = 3
_AROUND = 2
_LIKE = 0.3
"""The share of the text's words that a place must have to be called near."""

_NOTHING = "Nothing in the file is like it; read the file again."
_WORD = re.compile(r"\w{3,}")


def nearest(text: str, wanted: str) -> str:
    """The text at the place of `text` most like `wanted`, as a difference in a few lines; bounded in time."""
    sought = wanted.split("\n")[:COMPARED_LINES]
    while len(sought) > 1 and not sought[-1].strip():
        sought.pop()
    lines = text.split("\n")
    at = _best(text, lines, sought)
    if at is None:
        return _NOTHING
    first = max(0, at - _SLACK)
    there = lines[first : at + len(sought) + _SLACK]
    if not {line.strip() for line in sought}.intersection(line.strip() for line in there):
        first, there = at, lines[at : at + len(sought)]
    words = set(_WORD.findall("\n".join(sought)))
    common = words.intersection(_WORD.findall("\n".join(there)))
    if len(common) < _LIKE * len(words):
        return _NOTHING
    number, shown = _compared(sought, there)
    body = "\n".join(shown[:SHOWN_LINES] + (["[more differs below]"] if len(shown) > SHOWN_LINES else []))
    return f"The nearest text is at line {first + number} (- as given, + as in the file):\n{body}"


def _best(text: str, lines: list[str], sought: list[str]) -> int | None:
    """The index of the line at which most of the rare lines, or else words, agree that the text should begin."""
    votes: Counter[int] = Counter()
    wanted = {key: j for j, line in enumerate(sought) if (key := line.strip())}
    same: dict[str, list[int]] = {}
    for at, line in enumerate(lines):
        if (key := line.strip()) in wanted:
            same.setdefault(key, []).append(at)
    for key, hits in same.items():
        _vote(votes, key, wanted[key], hits)
    if not votes:
        begins = [0, *accumulate(len(line) + 1 for line in lines)]
        words = {(word, j) for j, line in enumerate(sought) for word in _WORD.findall(line)}
        keys = min(KEYS, max(2, SCANNED_CHARS // (len(text) or 1)))
        for word, j in sorted(words, key=lambda found: (-len(found[0]), found))[:keys]:
            _vote(votes, word, j, [bisect_right(begins, hit) - 1 for hit in _hits(text, word)])
    if not votes:
        return None
    return max(0, max(votes, key=lambda at: (2 * votes[at] + votes.get(at - 1, 0) + votes.get(at + 1, 0), -at)))


def _vote(votes: Counter[int], key: str, j: int, hits: list[int]) -> None:
    for line in set(hits if len(hits) <= COMMON else ()):
        votes[line - j] += len(key) * 1_000 // len(hits)


def _hits(text: str, key: str) -> Iterator[int]:
    at = text.find(key)
    for _ in range(COMMON + 1):
        if at < 0:
            return
        yield at
        at = text.find(key, at + 1)


def _compared(sought: list[str], there: list[str]) -> tuple[int, list[str]]:
    """The number of the first line that is shown, counted from 1, and the lines of a diff from one to the other."""
    blocks = SequenceMatcher(None, [line.strip() for line in sought], [line.strip() for line in there], autojunk=False)
    changes = [_trimmed(code, len(sought)) for code in blocks.get_opcodes()]
    changes = [code for code in changes if code[1] < code[2] or code[3] < code[4]]
    plain = any(_packed(sought[i1:i2]) != _packed(there[j1:j2]) for _, i1, i2, j1, j2 in changes)
    mark = str if plain else _visible
    shown: list[str] = []
    for tag, i1, i2, j1, j2 in changes:
        if tag != "equal":
            shown += [f"-{mark(_short(line))}" for line in sought[i1:i2]]
            shown += [f"+{mark(_short(line))}" for line in there[j1:j2]]
            continue
        for place, (given, line) in enumerate(zip(sought[i1:i2], there[j1:j2], strict=True)):
            if given != line and not plain:
                shown += [f"-{_visible(_short(given))}", f"+{_visible(_short(line))}"]
            elif place < _AROUND or place >= i2 - i1 - _AROUND:
                shown.append(f" {_short(line)}")
    return changes[0][3] + 1, shown


def _trimmed(code: tuple[str, int, int, int, int], size: int) -> tuple[str, int, int, int, int]:
    """The step of a diff without lines of the file that are only around the place."""
    tag, i1, i2, j1, j2 = code
    if tag != "equal" and i1 == 0:
        j1 = max(j1, j2 - i2)
    if tag != "equal" and i2 == size:
        j2 = min(j2, j1 + i2 - i1)
    return tag, i1, i2, j1, j2


def _packed(lines: list[str]) -> str:
    return "".join("".join(lines).split())


def _short(line: str) -> str:
    return line if len(line) <= LINE_CHARS else f"{line[:LINE_CHARS]}[...]"


def _visible(line: str) -> str:
    """The line with its white space as signs."""
    signs = {" ": "\u00b7", "\t": "\u2192", "\r": "\u240d"}
    return "".join(signs.get(char, f"\\u{ord(char):04x}" if char.isspace() else char) for char in line)
