"""The tools of one session, in the order they are offered."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from attrs import field, frozen

from punie.domain.tools.tool import ToolDescriptor, ToolKind


def _first_of_each_name(tools: Iterable[ToolDescriptor]) -> tuple[ToolDescriptor, ...]:
    kept: dict[str, ToolDescriptor] = {}
    for tool in tools:
        kept.setdefault(tool.name, tool)
    return tuple(kept.values())


@frozen
class CatalogDelta:
    """The difference between two catalogues, by name, each in offered order."""

    added: tuple[str, ...]
    removed: tuple[str, ...]
    changed: tuple[str, ...]

    def __bool__(self) -> bool:
        return bool(self.added or self.removed or self.changed)


@frozen
class SearchableOffer:
    """The same tools for a model whose provider searches them itself.

    `offered` are sent in full. `deferred` are sent too, marked so that the provider shows the model no schema before
    the model searched for it; some tools may be in both. `notes` takes the place of the catalogue's notes; `brief` is
    the same without the names, for a provider that shows the model the names by itself.
    """

    offered: tuple[ToolDescriptor, ...]
    deferred: tuple[ToolDescriptor, ...]
    notes: str = ""
    brief: str = ""


@frozen
class ToolCatalog:
    """An immutable, ordered set of tools; of two with one name the first wins.

    `notes` is text for the model beside the tools: it goes with the instructions of the request that offers them. An
    engine whose provider searches tools may send `searchable` instead, where there is one.
    """

    tools: tuple[ToolDescriptor, ...] = field(default=(), converter=_first_of_each_name)
    notes: str = ""
    searchable: SearchableOffer | None = None

    def __iter__(self) -> Iterator[ToolDescriptor]:
        return iter(self.tools)

    def __len__(self) -> int:
        return len(self.tools)

    def __contains__(self, name: object) -> bool:
        return any(tool.name == name for tool in self.tools)

    @property
    def names(self) -> tuple[str, ...]:
        """The names in offered order."""
        return tuple(tool.name for tool in self.tools)

    def by_name(self, name: str) -> ToolDescriptor | None:
        """The tool of that name, or None."""
        return next((tool for tool in self.tools if tool.name == name), None)

    def by_kind(self, kind: ToolKind | str) -> tuple[ToolDescriptor, ...]:
        """The tools of one ACP kind."""
        return tuple(tool for tool in self.tools if tool.kind == kind)

    def by_category(self, category: str) -> tuple[ToolDescriptor, ...]:
        """The tools that carry that category."""
        return tuple(tool for tool in self.tools if category in tool.categories)

    def without(self, names: Iterable[str]) -> ToolCatalog:
        """This catalogue less the named tools."""
        left_out = frozenset(names)
        return ToolCatalog(tool for tool in self.tools if tool.name not in left_out)

    def merge(self, other: ToolCatalog) -> ToolCatalog:
        """This catalogue followed by the tools of `other` whose names it does not use."""
        return ToolCatalog((*self.tools, *other.tools))

    def diff(self, newer: ToolCatalog) -> CatalogDelta:
        """The tools that `newer` added, removed and changed against this catalogue."""
        mine = {tool.name: tool for tool in self.tools}
        theirs = {tool.name: tool for tool in newer.tools}
        return CatalogDelta(
            added=tuple(name for name in theirs if name not in mine),
            removed=tuple(name for name in mine if name not in theirs),
            changed=tuple(name for name in mine if name in theirs and mine[name] != theirs[name]),
        )
