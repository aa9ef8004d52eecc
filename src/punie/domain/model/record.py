"""The record of a conversation for the model that summarises it, and the list of calls that goes with the summary."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cached_property
from typing import Final, cast

from attrs import define, frozen

from punie.domain.model.text import read_arguments
from punie.domain.values.display import one_line

NOTED: Final = "Calls until here, as Punie noted them:"
NOTES_CHARS: Final = 6_000
NOTE_CHARS: Final = 200
DETAILS: Final = 8
"""Details that are kept of one file, command or search: the latest."""

AWAY: Final = "[An old result of "
PLACES: Final = 4
"""Places that are kept of one search: the first."""

INPUT_CHARS_PER_TOKEN: Final = 2.5
"""Characters of the record for each token that it may have in any case; cautious, for code."""

TALK_WEIGHT: Final = 4
"""A message has that many times the share of a result, since the decisions are in messages."""

_UNBOUNDED = 10**12
_LEFT_OUT = "\n[... {count} characters are left out here ...]\n"
_CHANGES = re.compile("edit|write|patch|replace|create|delete|remove|rename|move|restore|insert", re.IGNORECASE)
_CHECKS = re.compile("test|lint|types|check|build|commit", re.IGNORECASE)
_PATH_NAMES = re.compile("(?:path|file)s?$|^(?:file_?name|pathInProject|uri)$", re.IGNORECASE)
_QUERY_NAMES = re.compile("query|pattern|regex|symbol", re.IGNORECASE)
_IN_PATCH = re.compile(r"^(?:\+\+\+ (?:b/)?|\*\*\* (?:Update|Add|Delete) File: )([^\t\n]+)", re.MULTILINE)
_PLACE = re.compile(r"^(\S+?:\d+)(?=[:\s-])", re.MULTILINE)
_LINES = re.compile(r"\A\[lines ([\d, -]*\d)")
_END = re.compile(r"\[(exit code -?\d+|ended by [^\]\n]+|still running)")
_DENIED = "Nothing was done."


@define(slots=False)
class MadeCall:
    """A call in a history. `arguments` are JSON, `result` is None where there is none, `outcome` for the record."""

    tool: str
    arguments: str
    result: str | None = None
    outcome: str = "success"

    @cached_property
    def _given(self) -> tuple[str, dict[str, object]]:
        """The tool and its arguments, also where the call went through `call_tool`."""
        given = _object(read_arguments(self.arguments))
        name = given.get("name")
        if self.tool == "call_tool" and isinstance(name, str):
            return name, _object(given.get("arguments"))
        return self.tool, given

    @cached_property
    def paths(self) -> tuple[str, ...]:
        """The paths that the arguments name, by the arguments' names."""
        given = self._given[1]
        named = [text for name, value in given.items() if _PATH_NAMES.search(name) for text in _texts(value)]
        patch = given.get("patch")
        return tuple(dict.fromkeys([*named, *(_IN_PATCH.findall(patch) if isinstance(patch, str) else ())]))

    @property
    def changed(self) -> tuple[str, ...]:
        """The paths of a call that changed files; none for others and for one that did not work."""
        worked = self.outcome != "failed" and _DENIED not in (self.result or "")[-200:]
        return self.paths if worked and _CHANGES.search(self._given[0]) else ()

    @property
    def note(self) -> tuple[str, str]:
        """The deed of the call with its object, and a detail; both empty for a call that needs no note."""
        tool, given = self._given
        result, paths = self.result or "", ", ".join(self.paths)
        queries = [text for name, value in given.items() if _QUERY_NAMES.search(name) for text in _texts(value)]
        command = given.get("command")
        what = command if isinstance(command, str) else " in ".join(filter(None, (", ".join(queries), paths)))
        if self.outcome == "failed" or (len(result) < NOTE_CHARS * 5 and result.endswith(_DENIED)):
            word = "failed" if self.outcome == "failed" else "denied"
            return f"{word} {tool} {what}", result[: 2 * NOTE_CHARS]
        if isinstance(command, str) or _CHECKS.search(tool):
            end = _END.findall(result) or [result.strip().rpartition("\n")[2]]
            return f"ran {what if command else f'{tool} {what}'}", "" if end[-1].startswith(AWAY) else end[-1]
        if self.changed:
            return f"changed {paths}", ""
        if queries:
            return f"searched {what}", ", ".join(_PLACE.findall(result)[:PLACES])
        told = _LINES.match(result)
        asked = " ".join(f"{name} {value}" for name, value in given.items() if isinstance(value, int))
        return (f"read {paths}", f"lines {told[1]}" if told else asked) if paths else ("", "")


@frozen
class Piece:
    """A part of a history that is never cut apart: a prompt, or an answer with the results of all its calls.

    `tokens` is an estimate by its length; `text` is what was said in it, and `calls` are those of the answer, whole. A
    piece that `is_summary` stands for what was cut off before: to summarise it alone gains nothing. `away_tokens` are
    won where its large results are put away.
    """

    tokens: int
    text: str
    is_prompt: bool = False
    is_summary: bool = False
    away_tokens: int = 0
    calls: tuple[MadeCall, ...] = ()


def record_chars(pieces: Sequence[Piece], first: int, taken_tokens: int, most_tokens: int) -> int:
    """The characters that a record of the pieces before `first` may have, to take `most_tokens`.

    The whole history takes `taken_tokens`: its record takes no more for each character than the history does.
    """
    old, all_of_it = (sum(piece.tokens for piece in some) for some in (pieces[:first], pieces))
    whole = len(written_out(pieces[:first], _UNBOUNDED))
    fitting = whole * most_tokens * all_of_it // max(1, taken_tokens * old)
    return min(whole, max(fitting, int(most_tokens * INPUT_CHARS_PER_TOKEN)))  # a shorter one is then shorter indeed


def written_out(pieces: Sequence[Piece], limit_chars: int) -> str:
    """The record of these pieces for the model that summarises them, as long as the limit allows.

    Short texts are whole. The long ones share what is left, with head and tail: later ones and results about files
    that were changed get more, and what was said gets most.
    """
    changed = {path for piece in pieces for call in piece.calls for path in call.changed}
    entries: list[tuple[str, str, float]] = []
    for place, piece in enumerate(pieces):
        weight = 1 + place / len(pieces)
        entries.append(("", piece.text, weight * TALK_WEIGHT))
        for call in piece.calls:
            entries.append((f"CALL {call.tool}: ", call.arguments, weight))
            if call.result is not None:
                about = 1 if changed.isdisjoint(call.paths) else 2
                entries.append((f"RESULT of {call.tool} ({call.outcome}): ", call.result, weight * about))
    entries = [entry for entry in entries if entry[0] or entry[1]]
    labels = sum(len(label) + 2 for label, _, _ in entries) - 2
    shares = _shares([(len(text), weight) for _, text, weight in entries], max(0, limit_chars - labels))
    told = (label + within(text, share) for (label, text, _), share in zip(entries, shares, strict=True))
    return within("\n\n".join(told), limit_chars)


def _shares(entries: Sequence[tuple[int, float]], budget: int) -> list[int]:
    """The characters of each of these sizes and weights that fit together; what a short one leaves is the others'."""
    shares = [size for size, _ in entries]
    if sum(shares) <= budget:
        return shares
    weights = sum(weight for _, weight in entries)
    for index in sorted(range(len(entries)), key=lambda place: entries[place][0] / entries[place][1]):
        size, weight = entries[index]
        share = int(budget * weight / weights)
        if size > share:
            shares[index] = max(0, share - len(_LEFT_OUT))  # the line that says so needs its place as well
        budget -= min(size, share)
        weights -= weight
    return shares


def noted(pieces: Sequence[Piece], limit_chars: int) -> str:
    """The list of these calls, with that of an earlier summary: files, lines, commands, ends and denials.

    The latest come last. Where not all fit in `NOTES_CHARS` or the limit, changed files and the latest are kept. Empty
    where there are none.
    """
    notes: dict[str, list[str]] = {}
    for piece in pieces:
        _, found, earlier = piece.text.rpartition(f"{NOTED}\n")
        for line in earlier.partition("\n\n")[0].splitlines() if found else ():
            head, _, details = line.removeprefix("- ").partition(" -> ")
            notes[head] = details.split("; ") if details else []
        for call in piece.calls:
            head, detail = (one_line(text, NOTE_CHARS) for text in call.note)
            if head:
                before = notes.pop(head, [])
                notes[head] = [*(one for one in before if one != detail), *([detail] if detail else [])][-DETAILS:]
    lines = [f"- {head} -> {'; '.join(details)}" if details else f"- {head}" for head, details in notes.items()]
    left, kept = min(limit_chars, NOTES_CHARS), set[str]()
    for _, line in sorted(enumerate(lines), key=lambda line: (not line[1].startswith("- changed "), -line[0])):
        if len(line) < left:
            kept.add(line)
            left -= len(line) + 1
    return "\n".join([NOTED, *(line for line in lines if line in kept)]) if kept else ""


def within(text: str, limit_chars: int) -> str:
    """The text with its middle left out where it is longer than the limit."""
    if len(text) <= limit_chars:
        return text
    head = limit_chars // 3
    tail = text[len(text) - (limit_chars - head) :]
    return text[:head] + _LEFT_OUT.format(count=len(text) - limit_chars) + tail


def _texts(value: object) -> list[str]:
    """The texts of an argument that is one, or a list of them."""
    many = cast("list[object]", value) if isinstance(value, list) else [value]
    return [one for one in many if isinstance(one, str)]


def _object(value: object) -> dict[str, object]:
    return cast("dict[str, object]", value) if isinstance(value, dict) else {}
