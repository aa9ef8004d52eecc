"""Every tool of one session: registered, switched on and off, found, asked about (S2-11 to S2-23).

What the model may call is what stands here and is enabled; the desk finds tools nowhere else.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable
from types import MappingProxyType
from typing import ClassVar, Protocol, TypeAlias, TypeVar

from attrs import define, field, frozen

from punie.application.tools.session_tool import CallContext, PreparedCall, SessionTool
from punie.domain.tools.availability import LeftOut, Surroundings, why_unavailable
from punie.domain.tools.catalog import ToolCatalog
from punie.domain.tools.listing import ListedTool, RegistryStatistics, ToolListing
from punie.domain.tools.metadata import Capability
from punie.domain.tools.tool import ToolDescriptor, ToolSource
from punie.domain.values.json_value import JsonObject

Service = TypeVar("Service")


class Services(Protocol):
    """What a tool's factory may take from its session: ports by their type. Lives as long as the session."""

    @abstractmethod
    def get(self, kind: type[Service]) -> Service:
        """The session's implementation of that port. Raises `LookupError` where it has none."""
        ...


class NoServices(Services):
    """A session without services: for tools that need none."""

    def get(self, kind: type[Service]) -> Service:
        raise LookupError(f"this session has no {kind.__name__}")


ToolFactory: TypeAlias = Callable[[Services], SessionTool]


class TypedTool(SessionTool):
    """A tool that is registered by its type: a subclass says what it is in `DESCRIPTOR`, and gives `prepare`.

    It is made once a session, when it is first called for, with the session's services and its own configuration.
    """

    DESCRIPTOR: ClassVar[ToolDescriptor]

    def __init__(self, services: Services, **configuration: object) -> None:
        self.services = services
        self.configuration = configuration

    @property
    def descriptor(self) -> ToolDescriptor:
        return self.DESCRIPTOR

    def title(self, arguments: JsonObject) -> str:
        return self.DESCRIPTOR.title or self.DESCRIPTOR.name

    def denial(self, arguments: JsonObject) -> str:
        return f"Permission denied to use {self.DESCRIPTOR.name}"

    def paths(self, arguments: JsonObject) -> tuple[str, ...]:
        return ()

    @abstractmethod
    async def prepare(self, arguments: JsonObject, context: CallContext) -> PreparedCall: ...


class ToolNameTakenError(ValueError):
    """A tool of that name is registered already; unregister it first."""


@frozen
class ToolRegistered:
    """A tool came."""

    tool: ToolDescriptor


@frozen
class ToolUnregistered:
    """A tool went."""

    tool: ToolDescriptor


RegistryEvent: TypeAlias = ToolRegistered | ToolUnregistered


@define
class _Entry:
    """A registered tool, made when it is first called for. `offered`: it came with the session's catalogue."""

    descriptor: ToolDescriptor
    factory: ToolFactory
    offered: bool = False
    tool: SessionTool | None = None


@define
class ToolRegistry:
    """The registry of one session; lives as long as it. Tools that cannot work in its surroundings are left out."""

    services: Services = field(factory=NoServices)
    surroundings: Surroundings = field(factory=Surroundings)
    _entries: dict[str, _Entry] = field(factory=dict[str, _Entry], init=False)
    _disabled: set[str] = field(factory=set[str], init=False)
    _locked: set[str] = field(factory=set[str], init=False)
    _left_out: dict[str, LeftOut] = field(factory=dict[str, LeftOut], init=False)
    _subscribers: list[Callable[[RegistryEvent], None]] = field(factory=list, init=False)
    _catalog: ToolCatalog | None = field(default=None, init=False)

    @property
    def tools(self) -> tuple[ToolDescriptor, ...]:
        """Every registered tool in offered order, the disabled ones too; a copy."""
        return tuple(entry.descriptor for entry in self._entries.values())

    @property
    def left_out(self) -> tuple[LeftOut, ...]:
        """The tools that cannot work here, with reasons."""
        return tuple(self._left_out.values())

    @property
    def statistics(self) -> RegistryStatistics:
        """The figures as they are now."""
        tools = self.tools
        enabled = sum(self.is_enabled(tool.name) for tool in tools)
        return RegistryStatistics(
            registered=len(tools),
            enabled=enabled,
            disabled=len(tools) - enabled,
            left_out=len(self._left_out),
            by_source=MappingProxyType(Counter(tool.source.value for tool in tools)),
            by_category=MappingProxyType(Counter(category for tool in tools for category in tool.categories)),
        )

    @property
    def listing(self) -> ToolListing:
        """Everything that can be told of it to somebody outside, as it is now."""
        return ToolListing(tuple(self._listed(tool) for tool in self.tools), self.left_out, self.statistics)

    def listed(self, name: str) -> ListedTool | None:
        """That tool as it stands now; None where there is none."""
        entry = self._entries.get(name)
        return None if entry is None else self._listed(entry.descriptor)

    def _listed(self, tool: ToolDescriptor) -> ListedTool:
        return ListedTool(tool, self.is_enabled(tool.name), tool.name in self._locked)

    def catalog(self) -> ToolCatalog:
        """What the model is offered: the enabled tools; the same object until something changes."""
        if self._catalog is None:
            self._catalog = ToolCatalog(tool for tool in self.tools if self.is_enabled(tool.name))
        return self._catalog

    def subscribe(self, hear: Callable[[RegistryEvent], None]) -> Callable[[], None]:
        """Hear of every registration and removal from now on, once each; calling what comes back ends it."""
        self._subscribers.append(hear)

        def leave() -> None:
            if hear in self._subscribers:
                self._subscribers.remove(hear)

        return leave

    def register(self, descriptor: ToolDescriptor, factory: ToolFactory) -> bool:
        """Take in a tool that `factory` makes from the session's services, once, when it is first called for.

        False where it cannot work here: then it stands in `left_out`. Raises `ToolNameTakenError`.
        """
        if descriptor.name in self._entries:
            raise ToolNameTakenError(f"a tool named {descriptor.name!r} is registered already")
        if not self._works_here(descriptor):
            return False
        self._entries[descriptor.name] = _Entry(descriptor, factory)
        self._tell(ToolRegistered(descriptor))
        return True

    def register_type(self, kind: type[TypedTool], /, **configuration: object) -> bool:
        """As `register`, for a class: it is made from the services and this configuration."""
        return self.register(kind.DESCRIPTOR, lambda services: kind(services, **configuration))

    def unregister(self, name: str) -> bool:
        """Remove a tool; False for one that is not there."""
        entry = self._entries.pop(name, None)
        if entry is None:
            return False
        self._tell(ToolUnregistered(entry.descriptor))
        return True

    def offer(self, tools: Iterable[SessionTool]) -> None:
        """Put the session's catalogue in place of the last one that was offered, in this order.

        What is not in it any more is removed, what is new or says something else is registered; a name that was
        registered by itself, or comes twice, keeps its first tool.
        """
        own = {name: entry for name, entry in self._entries.items() if not entry.offered}
        before = {name: entry.descriptor for name, entry in self._entries.items() if entry.offered}
        self._left_out = {name: left for name, left in self._left_out.items() if name in own}
        found: dict[str, _Entry] = {}
        for tool in tools:
            name = tool.descriptor.name
            if name not in own and name not in found and self._works_here(tool.descriptor):
                found[name] = _Entry(tool.descriptor, _ready(tool), offered=True)
        self._entries = {**found, **own}
        self._catalog = None
        for name, old in before.items():
            if name not in found or found[name].descriptor != old:
                self._tell(ToolUnregistered(old))
        for name, entry in found.items():
            if before.get(name) != entry.descriptor:
                self._tell(ToolRegistered(entry.descriptor))

    def get(self, name: str) -> SessionTool | None:
        """The tool of that name, enabled or not, made now where it was not yet; None where there is none."""
        entry = self._entries.get(name)
        if entry is None:
            return None
        if entry.tool is None:
            entry.tool = entry.factory(self.services)
        return entry.tool

    def is_enabled(self, name: str) -> bool:
        """Whether a tool of that name would be offered."""
        return name not in self._disabled and name not in self._locked

    def set_enabled(self, name: str, *, enabled: bool) -> bool:
        """Switch a tool on or off, from the next model request on.

        False for one that is not there, and for one to be switched on that the settings disable.
        """
        if name not in self._entries or (enabled and name in self._locked):
            return False
        if enabled:
            self._disabled.discard(name)
        else:
            self._disabled.add(name)
        self._catalog = None
        return True

    def disable_always(self, names: Iterable[str]) -> None:
        """Switch these names off for good, whoever comes to bear them: what the settings say."""
        self._locked.update(names)
        self._catalog = None

    def query(
        self,
        *,
        category: str | None = None,
        capabilities: Capability = Capability.NONE,
        tags: Iterable[str] = (),
        source: ToolSource | None = None,
        enabled: bool | None = None,
        text: str = "",
    ) -> tuple[ToolDescriptor, ...]:
        """The tools for which all of this holds, in offered order.

        They need all of `capabilities`, bear all of `tags`, and every word of `text` occurs, whatever its case, in
        their name, title, description, categories or tags.
        """
        wanted, words = frozenset(tags), text.casefold().split()
        return tuple(
            tool
            for tool in self.tools
            if (category is None or category in tool.categories)
            and capabilities in tool.details.required_capabilities
            and wanted <= frozenset(tool.tags)
            and (source is None or tool.source is source)
            and (enabled is None or self.is_enabled(tool.name) is enabled)
            and _mentions(tool, words)
        )

    def _works_here(self, descriptor: ToolDescriptor) -> bool:
        reason = why_unavailable(descriptor, self.surroundings)
        if reason is None:
            self._left_out.pop(descriptor.name, None)
        else:
            self._left_out[descriptor.name] = LeftOut(descriptor, reason)
        return reason is None

    def _tell(self, event: RegistryEvent) -> None:
        self._catalog = None
        for hear in tuple(self._subscribers):
            hear(event)


def _ready(tool: SessionTool) -> ToolFactory:
    """A factory for a tool that is made already."""
    return lambda _services: tool


def _mentions(tool: ToolDescriptor, words: Iterable[str]) -> bool:
    said = " ".join((tool.name, tool.title or "", tool.description, *tool.categories, *tool.tags)).casefold()
    return all(word in said for word in words)
