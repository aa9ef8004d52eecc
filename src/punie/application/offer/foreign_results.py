"""The results of other parties' tools, read as a profile's row says: their text and places, and what is passed on."""

from __future__ import annotations

import json
import posixpath
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from string import Formatter

from attrs import evolve

from punie.application.offer.profiles import Explanation, ResultForm
from punie.domain.tools.schema import text_argument
from punie.domain.tools.tool import ToolResult
from punie.domain.values.content import Text
from punie.domain.values.display import one_line
from punie.domain.values.json_value import JsonObject, JsonValue, NotJsonError, freeze
from punie.domain.values.paths import is_inside

PLACES_LIMIT = 20
"""Places of one result that a client is told."""


def as_described(result: ToolResult, form: ResultForm, base: str, hidden: Callable[[str], bool]) -> ToolResult:
    """The result in the words of its row; unchanged where the call failed or the result has another form.

    Entries of paths for which `hidden` is true are left out, and counted. Relative paths are taken from `base`.
    """
    told = _told(result) if result.succeeded and form != ResultForm() else None
    if told is None:
        return result
    listed = form.entries.rpartition(".")[2]
    entries = [*_entries(told, form.entries)] if listed else []
    shown = [entry for entry in entries if not hidden(text_argument(entry, form.path))]
    flags = {key: value for key, value in told.items() if isinstance(value, (bool, int)) and value is not False}
    lines = [form.each.format_map(_Parts(entry)) for entry in shown] or ([f"No {listed}."] if listed else [])
    lines += [said] if (said := text_argument(told, form.text)) else []
    if len(shown) < len(entries):
        lines.append(f"[{len(entries) - len(shown)} in files that may hold secrets are left out]")
    lines += [f"[{key}: {json.dumps(value)}]" for key, value in flags.items() if key != form.exit or value != 0]
    keys = {name for _, name, _, _ in Formatter().parse(form.each) if name} | {form.path, form.line}
    passed = {listed: [{key: entry[key] for key in entry if key in keys} for entry in shown]} if listed else {}
    whole = {**({form.text: told[form.text]} if form.text in told else {}), **passed, **flags}
    places = [*_places(shown or [told], form, base)]
    return evolve(
        result,
        content=(Text("\n".join(lines)),),
        for_model=None,
        structured=freeze(whole),
        locations=tuple(dict.fromkeys(path for path, _ in places))[:PLACES_LIMIT],
        line=places[0][1] if places else None,
    )


def entries_of(result: ToolResult, form: ResultForm) -> Counter[str] | None:
    """The entries of a described result, counted by their texts, without numbers; None where they are not all there."""
    told, names = result.structured, [name for _, name, _, _ in Formatter().parse(form.each) if name]
    listed = told.get(form.entries.rpartition(".")[2]) if isinstance(told, Mapping) else None
    cut = isinstance(told, Mapping) and any(value is True for value in told.values())
    if not result.succeeded or not isinstance(listed, tuple) or cut:
        return None
    entries = (entry for entry in listed if isinstance(entry, Mapping))
    return Counter(
        ": ".join(one_line(text) for name in names if (text := text_argument(entry, name))) for entry in entries
    )


def explained(result: ToolResult, row: Explanation, arguments: JsonObject) -> str:
    """The text in which the other tool describes a call with these arguments; empty where it has none."""
    told, wanted = _told(result) if result.succeeded else None, arguments.get(row.argument)
    entries = () if told is None else _entries(told, row.entries)
    found = [row.each.format_map(_Parts(entry)) for entry in entries if entry.get(row.key) == wanted]
    return "\n".join(found)


def _told(result: ToolResult) -> JsonObject | None:
    """The structured result, or the object that its text is, as older servers send it."""
    if isinstance(result.structured, Mapping):
        return result.structured
    try:
        parsed = freeze(json.loads(result.text))
    except (ValueError, NotJsonError, RecursionError):
        return None
    return parsed if isinstance(parsed, Mapping) else None


def _entries(told: JsonObject, path: str) -> Iterator[JsonObject]:
    """The entries at the end of a dotted path, each with what the entries around it say."""
    key, _, rest = path.partition(".")
    items = told.get(key)
    around = {name: value for name, value in told.items() if name != key}
    for item in items if isinstance(items, tuple) else ():
        entry = {**around, **(item if isinstance(item, Mapping) else {"value": item})}
        yield from _entries(entry, rest) if rest else (entry,)


class _Parts(dict[str, JsonValue]):
    """The values of an entry as texts; what is missing is empty."""

    def __missing__(self, _name: str) -> str:
        return ""


def _places(entries: list[JsonObject], form: ResultForm, base: str) -> Iterator[tuple[str, int | None]]:
    for entry in entries:
        path, line = posixpath.normpath(posixpath.join(base, text_argument(entry, form.path))), entry.get(form.line)
        if text_argument(entry, form.path) and is_inside(path, (base,)):
            yield path, line if type(line) is int and line > 0 else None
