"""The documents that a JSON Schema refers to, and the work that its references make; nothing is read or run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeAlias, cast
from urllib.parse import unquote, urldefrag, urljoin

from punie.domain.values.json_value import array_in, object_in

Schema: TypeAlias = "Mapping[str, object]"

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
        return sum(("pattern" in schema) + len(object_in(schema.get("patternProperties"))) for schema, _ in self._found)

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
            values = object_in(inner).values() if keyword in _MAPS else array_in(inner) or (inner,)
            yield from filter(None, map(object_in, values))

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
        return object_in(value) or None


def _subschemas(schema: Schema) -> Iterator[tuple[Schema, str]]:
    """Every subschema with the address of its document, which is empty where the root has no `$id`."""
    ahead: list[tuple[object, str]] = [(schema, "")]
    while ahead:
        value, base = ahead.pop()
        ahead.extend((item, base) for item in array_in(value))
        found = object_in(value)
        if not found:
            continue
        base = _own_base(found, base)
        yield found, base
        for keyword, inner in found.items():
            if keyword in _MAPS and (by_name := object_in(inner)):
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
    several = array_in(value)
    return several[int(name)] if name.isdecimal() and int(name) < len(several) else object_in(value).get(name)
