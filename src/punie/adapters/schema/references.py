"""Which documents a JSON Schema refers to, found without reading any of them."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import urldefrag, urljoin

REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")

_MAPS = frozenset(
    {"properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies"},
)
"""Keywords whose value maps names of the author's choosing to schemas: a property may well be called `$ref`."""

_DATA = frozenset({"enum", "const", "default", "examples", "example"})
"""Keywords whose value is data: what looks like a reference in there is none."""


def remote_reference(schema: dict[str, object]) -> str | None:
    """The first reference that leaves the schema, or None.

    A reference to an anchor or a pointer of the schema itself stays inside, and so does one to a subschema that the
    schema embeds under an `$id` of its own.
    """
    found = list(_subschemas(schema, ""))
    known = {base for _, base in found}
    for subschema, base in found:
        for keyword in REFERENCES:
            target = subschema.get(keyword)
            if isinstance(target, str) and _document(base, target) not in known:
                return target
    return None


def count_patterns(schema: dict[str, object]) -> int:
    """How many regular expressions the schema holds."""
    total = 0
    for subschema, _ in _subschemas(schema, ""):
        by_name = subschema.get("patternProperties")
        total += "pattern" in subschema
        total += len(by_name) if isinstance(by_name, dict) else 0
    return total


def _subschemas(schema: dict[str, object], base: str) -> Iterator[tuple[dict[str, object], str]]:
    """Every subschema with the address of the document that it belongs to; the root's is empty where it has no `$id`."""
    ahead: list[tuple[object, str]] = [(schema, base)]
    while ahead:
        value, base = ahead.pop()
        if isinstance(value, list):
            ahead.extend((item, base) for item in value)
        elif isinstance(value, dict):
            base = _own_base(value, base)
            yield value, base
            for keyword, inner in value.items():
                if keyword in _MAPS and isinstance(inner, dict):
                    ahead.extend((item, base) for item in inner.values())
                elif keyword not in _DATA:
                    ahead.append((inner, base))


def _own_base(schema: dict[str, object], base: str) -> str:
    for keyword in ("$id", "id"):  # draft 4 spells it without the sign
        own = schema.get(keyword)
        if isinstance(own, str):
            return _document(base, own) if not own.startswith("#") else base
    return base


def _document(base: str, reference: str) -> str:
    try:
        return urldefrag(urljoin(base, reference)).url
    except ValueError:  # not an address at all; the compiler says what it thinks of it
        return reference
