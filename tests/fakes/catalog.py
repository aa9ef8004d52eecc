"""Catalogue entries as a test writes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from punie.domain.tools.catalog import CatalogAnswer, DroppedEntry, ToolCatalog
from punie.domain.tools.tool import ToolDescriptor, ToolSource
from punie.domain.values.json_value import NotJsonError

_KNOWN = {
    "name", "kind", "description", "title", "parameters", "inputSchema", "outputSchema", "annotations",
    "requiresPermission", "requires_permission", "categories", "tags",
}  # fmt: skip


def describe(entry: Mapping[str, Any]) -> ToolDescriptor:
    """The tool of one entry in the shape of the discovery extension; raises `ValueError` for an unusable one."""
    name = entry.get("name")
    if not isinstance(name, str) or "__" in name:
        raise ValueError(f"{name!r} is not a tool name")
    return ToolDescriptor(
        name=name,
        kind=entry.get("kind"),
        description=entry.get("description", ""),
        parameters=entry.get("inputSchema", entry.get("parameters")),
        title=entry.get("title"),
        requires_permission=bool(entry.get("requiresPermission", entry.get("requires_permission", False))),
        categories=entry.get("categories", ()),
        tags=entry.get("tags", ()),
        annotations=entry.get("annotations", {}),
        output_schema=entry.get("outputSchema"),
        metadata={key: value for key, value in entry.items() if key not in _KNOWN},
        source=ToolSource.IDE,
    )


def answer(entries: Sequence[Mapping[str, Any] | ToolDescriptor], *, extends: bool = False) -> CatalogAnswer:
    """The whole answer to discovery: the good entries in order, the bad ones with reasons."""
    good: list[ToolDescriptor] = []
    dropped: list[DroppedEntry] = []
    for entry in entries:
        if isinstance(entry, ToolDescriptor):
            good.append(entry)
            continue
        try:
            good.append(describe(entry))
        except (ValueError, NotJsonError) as problem:
            dropped.append(DroppedEntry(str(entry.get("name", "")), str(problem)))
    return CatalogAnswer(ToolCatalog(good), tuple(dropped), extends=extends)
