"""The documents that a JSON Schema refers to, and the work that its references make; nothing is read or run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias, cast
from urllib.parse import unquote, urldefrag, urljoin

Schema: TypeAlias = "dict[str, object]"

REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")

WAY_LIMIT = 10_000
"""The most ways through `allOf`, `$ref` and the like that one value may take; ordinary schemas have a few."""

_MAPS = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies"})
"""Keywords whose value maps free names to schemas: a property may be called `$ref`."""

_DATA = frozenset({"enum", "const", "default", "examples", "example", "required", "type"})
"""Keywords whose value is data, in which nothing is a reference."""

_SAME_VALUE = ("allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas", "dependencies")
"""Keywords whose schemas check the same value again, so that their work multiplies through references."""


class SchemaReferences:
    """The references of a schema of plain dicts and lists; lives while the schema is compiled."""

    def __init__(self, schema: Schema) -> None:
        self._root = schema
        self._found = list(_subschemas(schema))
        self._refers = any(keyword in found for found, _ in self._found for keyword in REFERENCES)
        self._ways: dict[int, int] = {}

    @property
    def remote(self) -> str | None:
        """The first reference that leaves the schema, or None.

        A reference to an anchor or a pointer of the schema itself stays inside, and so does one to a subschema that
        the schema embeds under an `$id` of its own.
        """
        if not self._refers:
            return None
        known = {base for _, base in self._found}
        for schema, base in self._found:
            for keyword in REFERENCES:
                target = schema.get(keyword)
                if isinstance(target, str) and _document(base, target) not in known:
                    return target
        return None

    @property
    def patterns(self) -> int:
        """The number of regular expressions in the schema."""
        return sum(
            ("pattern" in schema) + len(_object(schema.get("patternProperties")) or ()) for schema, _ in self._found
        )

    @property
    def multiply(self) -> bool:
        """Whether references multiply beyond `WAY_LIMIT`: forty short definitions can ask for 2**40 checks."""
        if not self._refers:
            return False
        try:
            return any(self._ways_through(schema) > WAY_LIMIT for schema, _ in self._found)
        except RecursionError:  # a chain of thousands of references
            return True

    def _ways_through(self, schema: Schema) -> int:
        key = id(schema)  # every subschema lives as long as the root
        if key not in self._ways:
            self._ways[key] = 1  # the library stops at a reference that leads back to where it came from
            ways = 1 + sum(self._ways_through(inner) for inner in self._of_same_value(schema))
            self._ways[key] = min(ways, WAY_LIMIT + 1)
        return self._ways[key]

    def _of_same_value(self, schema: Schema) -> Iterator[Schema]:
        for keyword in REFERENCES:
            target = self._target(schema.get(keyword))
            if target is not None:
                yield target
        for keyword in _SAME_VALUE:
            inner = schema.get(keyword)
            by_name = _object(inner) if keyword in _MAPS else None
            several = _array(inner) if by_name is None else list(by_name.values())
            for value in [inner] if several is None else several:
                found = _object(value)
                if found is not None:
                    yield found

    def _target(self, reference: object) -> Schema | None:
        if not isinstance(reference, str):
            return None
        fragment = unquote(urldefrag(reference).fragment)
        if not fragment.startswith("/"):
            anchored = (schema for schema, _ in self._found if schema.get("$anchor") == fragment)
            return next(anchored, None) if fragment else self._root
        value: object = self._root
        for part in fragment[1:].split("/"):
            value = _child(value, part.replace("~1", "/").replace("~0", "~"))
        return _object(value)


def _subschemas(schema: Schema) -> Iterator[tuple[Schema, str]]:
    """Every subschema with the address of its document, which is empty where the root has no `$id`."""
    ahead: list[tuple[object, str]] = [(schema, "")]
    while ahead:
        value, base = ahead.pop()
        ahead.extend((item, base) for item in _array(value) or ())
        found = _object(value)
        if found is None:
            continue
        base = _own_base(found, base)
        yield found, base
        for keyword, inner in found.items():
            by_name = _object(inner) if keyword in _MAPS else None
            if by_name is not None:
                ahead.extend((item, base) for item in by_name.values())
            elif keyword not in _DATA and isinstance(inner, (dict, list)):
                ahead.append((cast("object", inner), base))


def _own_base(schema: Schema, base: str) -> str:
    for keyword in ("$id", "id"):  # draft 4 spells it without the sign
        own = schema.get(keyword)
        if isinstance(own, str):
            return base if own.startswith("#") else _document(base, own)
    return base


def _document(base: str, reference: str) -> str:
    try:
        return urldefrag(urljoin(base, reference)).url
    except ValueError:  # no address at all, which the compiler reports
        return reference


def _child(value: object, name: str) -> object:
    several = _array(value)
    if several is not None:
        return several[int(name)] if name.isdecimal() and int(name) < len(several) else None
    by_name = _object(value)
    return None if by_name is None else by_name.get(name)


def _object(value: object) -> Schema | None:
    return cast("Schema", value) if isinstance(value, dict) else None


def _array(value: object) -> list[object] | None:
    return cast("list[object]", value) if isinstance(value, list) else None
