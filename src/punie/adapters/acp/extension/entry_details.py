"""Facts of a catalogue entry beyond name, kind and schema, in the keys that Punie knows.

An IDE may say any of it, in camel case or with underscores. What is of the wrong type says nothing: the entry is as
good without it, and everything stands in the tool's metadata as it came.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from punie.domain.tools.metadata import Capability, Permission, ToolExample, ToolMetadata

WORD_LIMIT = 64
"""Of a longer list the rest says nothing: each dependency is looked for on disk."""

_PLATFORMS = {"windows": "win32", "macos": "darwin", "mac": "darwin", "osx": "darwin"}


def entry_details(entry: Mapping[str, object]) -> ToolMetadata:
    """What the entry says. Raises `NotJsonError` for examples that are nested too deeply."""
    said = {_plain(key): value for key, value in entry.items()}
    return ToolMetadata(
        version=_text(said.get("version")),
        author=_text(said.get("author")),
        help_url=_text(said.get("helpurl")) or _text(said.get("help")),
        examples=_examples(said.get("examples")),
        required_capabilities=Capability(_flags(said.get("requiredcapabilities"), Capability)),
        required_permissions=Permission(_flags(said.get("requiredpermissions"), Permission)),
        deprecated=said.get("deprecated") is True,
        experimental=said.get("experimental") is True,
        requires_confirmation=_says_yes(said.get("requiresconfirmation")),
        estimated_time_ms=_count(said.get("estimatedtimems")),
        max_input_bytes=_count(said.get("maxinputbytes")) or None,
        platforms=(_PLATFORMS.get(word.casefold(), word.casefold()) for word in _words(said.get("platforms"))),
        dependencies=_dependencies(said.get("dependencies")),
    )


def names_strange_permission(entry: Mapping[str, object]) -> bool:
    """Whether the entry wants leave for something we have no word for: then a person has to be asked."""
    known = {_plain(name) for name in Permission.__members__}
    said = {_plain(key): value for key, value in entry.items()}
    return any(_plain(word) not in known for word in _words(said.get("requiredpermissions")))


def _plain(word: str) -> str:
    return word.replace("_", "").replace("-", "").casefold()


def _says_yes(value: object) -> bool:
    """In doubt yes, as with `requiresPermission`."""
    return value is not None and value is not False


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value.strip() else None


def _count(value: object) -> int | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if isinstance(value, int) and value >= 0 else None


def _words(value: object) -> list[str]:
    """The words of a list, or the one that stands there alone."""
    several = cast("list[object]", value) if isinstance(value, list) else [value]
    return [word for word in several[:WORD_LIMIT] if isinstance(word, str) and word.strip()]


def _flags(value: object, kind: type[Capability | Permission]) -> int:
    known = {_plain(name): kind[name].value for name in kind.__members__}
    return sum({known[_plain(word)] for word in _words(value) if _plain(word) in known})


def _examples(value: object) -> list[ToolExample]:
    """Those that have arguments: `{"arguments": {...}, "description": "..."}`."""
    found: list[ToolExample] = []
    for item in cast("list[object]", value)[:WORD_LIMIT] if isinstance(value, list) else ():
        example = cast("dict[str, object]", item) if isinstance(item, dict) else {}
        arguments = example.get("arguments")
        if isinstance(arguments, dict):
            found.append(ToolExample(cast("dict[str, object]", arguments), _text(example.get("description")) or ""))
    return found


def _dependencies(value: object) -> list[str]:
    """Names, or objects with a `name`; one that says `"required": false` may be missing."""
    several = cast("list[object]", value) if isinstance(value, list) else [value]
    named = [_dependency(item) for item in several[:WORD_LIMIT]]
    return [name for name in named if name is not None]


def _dependency(item: object) -> str | None:
    if not isinstance(item, dict):
        return _text(item)
    dependency = cast("dict[str, object]", item)
    return None if dependency.get("required") is False else _text(dependency.get("name"))
