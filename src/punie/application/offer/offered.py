"""The tools of a session as they are offered to the model: whole, by name alone, or found by a search."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

import anyio.lowlevel
from attrs import define, field

from punie.application.offer.toolbox import Toolbox
from punie.application.tools.session.search_tools import FoundTools, SearchTools
from punie.application.tools.session_tool import SessionTool
from punie.domain.tools.catalog import SearchableOffer, ToolCatalog
from punie.domain.tools.disclosure import (
    SEARCH_TOOLS,
    DisclosureForm,
    DisclosurePolicy,
    counts,
    findable,
    listing,
    unlisted_servers,
)
from punie.domain.tools.search import Stem, ToolIndex
from punie.domain.tools.tool import ToolDescriptor, estimated_tokens

NAMED_AT_ONCE = 20
"""How many tools one search loads by their exact names."""

LOADED_BY_ONE_SEARCH = 3
"""How many hits one search loads: the best and those nearly as good. A loaded tool costs tokens at each request."""

NEARLY_AS_GOOD = 0.9

SEARCH_WAIT_S = 5.0
"""How long a search waits for servers that have not listed their tools yet; later ones are found the next time."""

_WORDS = re.compile(r"[\w-]+")


class Elsewhere:
    """The tools of servers; lives as long as the session. This class serves a session without servers."""

    def unlisted(self) -> tuple[str, ...]:
        """The names of servers that never listed tools; they are asked only when the model searches."""
        return ()

    async def freshen(self, within_s: float | None = SEARCH_WAIT_S) -> None:
        """Ask those servers, for at most that time; the tools that they list are added to the session's."""
        del within_s
        await anyio.lowlevel.checkpoint()

    async def tools(self) -> tuple[SessionTool, ...]:
        """The tools that servers listed so far."""
        await anyio.lowlevel.checkpoint()
        return ()

    def hear(self, changed: Callable[[], None]) -> None:
        """Call `changed`, which returns at once, whenever a server's tools changed."""
        del changed


@define
class OfferedTools:
    """The tools that each model request offers, with those that the model picked; lives as long as the session.

    Within a turn picked tools are only added, at the end, so that a provider's prompt cache holds. A tool that is
    disabled, removed or changed is left out of the next request all the same.
    """

    toolbox: Toolbox
    policy: DisclosurePolicy
    stem: Stem
    elsewhere: Elsewhere = field(factory=Elsewhere)
    _picked: dict[str, ToolDescriptor] = field(factory=dict[str, ToolDescriptor], init=False)
    _seen: ToolCatalog | None = field(default=None, init=False)
    _unlisted: tuple[str, ...] = field(default=(), init=False)
    _form: DisclosureForm = field(default=DisclosureForm.FULL, init=False)
    _offered: ToolCatalog = field(factory=ToolCatalog, init=False)
    _named: tuple[ToolDescriptor, ...] = field(default=(), init=False)
    _index: ToolIndex | None = field(default=None, init=False)

    def __attrs_post_init__(self) -> None:
        self.elsewhere.hear(self.toolbox.mark_more_stale)

    def go_by(self, policy: DisclosurePolicy) -> None:
        """Use another policy from the next request on, for another model."""
        if policy != self.policy:
            self.policy, self._seen = policy, None

    async def current(self) -> ToolCatalog:
        """The tools that the next model request offers; the same object until something changes."""
        await self.toolbox.current()
        return self.settle()

    def settle(self) -> ToolCatalog:
        """As `current`, without waiting for changes that were announced."""
        registry, unlisted = self.toolbox.registry, self.elsewhere.unlisted()
        catalog = registry.catalog()
        if catalog is self._seen and unlisted == self._unlisted:
            return self._offered
        others, may_search = tuple(tool for tool in catalog if not self.policy.keeps(tool)), self._may_search()
        form = self.policy.form_for(others) if may_search else DisclosureForm.FULL
        wanted = may_search and (form is not DisclosureForm.FULL or bool(unlisted))
        registry.keep(SearchTools.DESCRIPTOR, lambda _services: SearchTools(self.find, self.freshen), wanted=wanted)
        catalog = registry.catalog()
        if others != self._named:
            self._named, self._index = others, None
        if form is DisclosureForm.FULL:
            self._offered = ToolCatalog(catalog, unlisted_servers(unlisted)) if unlisted else catalog
        else:
            there = {tool.name: tool for tool in others}
            self._picked = {name: tool for name, tool in self._picked.items() if there.get(name) == tool}
            self._offered = self._with_picked(catalog, others, form, unlisted)
        self._unlisted, self._form = unlisted, form
        self._seen = catalog
        return self._offered

    def begin_turn(self) -> None:
        """Begin a turn: of the tools picked before, the latest stay as far as the share allows, one at least."""
        left = self.policy.budget_tokens
        kept: dict[str, ToolDescriptor] = {}
        for name, tool in reversed(self._picked.items()):
            left -= estimated_tokens(tool)
            if left < 0 and kept:
                break
            kept[name] = tool
        if len(kept) < len(self._picked):
            self._picked = dict(reversed(kept.items()))
            self._seen = None

    def pick(self, names: Iterable[str]) -> tuple[ToolDescriptor, ...]:
        """Offer these tools from the next request on; returns those that exist and were only named so far."""
        self.settle()
        if self._form is DisclosureForm.FULL:
            return ()
        known = {tool.name: tool for tool in self._named}
        picked = tuple(known[name] for name in names if name in known)
        fresh = {tool.name: tool for tool in picked if tool.name not in self._picked}
        if fresh:
            self._picked |= fresh
            self._seen = None
        return picked

    async def freshen(self, within_s: float | None = SEARCH_WAIT_S) -> None:
        """Ask servers that never listed their tools, so that a search finds those too."""
        await self.elsewhere.freshen(within_s)
        await self.toolbox.current()

    def find(self, query: str, limit: int) -> FoundTools:
        """Search the tools that are only named, and pick those whose exact name is in the query, else the best hits."""
        self.settle()
        exact = self._said(query)
        if exact:
            return self._loaded(exact, exact[:NAMED_AT_ONCE])
        self._index = self._index or ToolIndex(self._named, self.stem)
        hits = self._index.search(query, limit)
        if not hits:
            return FoundTools(servers=counts(self._named))
        good = [hit.tool for hit in hits if hit.score >= NEARLY_AS_GOOD * hits[0].score][:LOADED_BY_ONE_SEARCH]
        return self._loaded([hit.tool for hit in hits], good)

    def _said(self, query: str) -> list[ToolDescriptor]:
        """The tools whose names are in the query. `search` and `open` count as names only without other words."""
        named = {tool.name: tool for tool in self._named}
        known = {**{tool.name: tool for tool in self._offered}, **named}
        words = dict.fromkeys(_WORDS.findall(query))
        if all(word in known for word in words):
            return [known[word] for word in words]
        return [named[word] for word in words if word in named and not word.isalpha()]

    def _loaded(self, found: Sequence[ToolDescriptor], wanted: Sequence[ToolDescriptor]) -> FoundTools:
        """Offer the wanted tools; returns which of the found ones are offered now."""
        self.pick(tool.name for tool in wanted)
        offered = frozenset(tool.name for tool in self.settle())
        loaded = tuple(tool for tool in found if tool.name in offered)
        return FoundTools(loaded, tuple(tool for tool in found if tool.name not in offered))

    def _with_picked(
        self,
        catalog: ToolCatalog,
        others: tuple[ToolDescriptor, ...],
        form: DisclosureForm,
        unlisted: tuple[str, ...],
    ) -> ToolCatalog:
        # The listing names picked tools as well, so that it does not change when a tool is picked.
        kept = tuple(tool for tool in catalog if self.policy.keeps(tool))
        picked = tuple(self._picked.values())
        elsewhere = unlisted_servers(unlisted)
        searchable = None
        if self.policy.form is DisclosureForm.AUTO:
            # A provider searches the tools that it is given; only our search reaches servers that listed nothing yet.
            beside = tuple(tool for tool in kept if unlisted or tool.name != SEARCH_TOOLS)
            notes = [_joined(findable(others, named=named), elsewhere) for named in (True, False)]
            searchable = SearchableOffer((*beside, *picked), others, *notes)
        return ToolCatalog((*kept, *picked), _joined(listing(others, form), elsewhere), searchable)

    def _may_search(self) -> bool:
        """Whether the built-in tool for searching may have its name, which is neither disabled nor taken."""
        registry = self.toolbox.registry
        found = registry.listed(SEARCH_TOOLS)
        return registry.is_enabled(SEARCH_TOOLS) and (found is None or found.tool is SearchTools.DESCRIPTOR)


def _joined(*notes: str) -> str:
    return "\n".join(filter(None, notes))
