"""The tools of one session as they are now: what is offered, and what each name leads to."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from typing import TypeAlias

import anyio
from attrs import define, field

from punie.application.discover_tools import DiscoverTools
from punie.application.session_tool import SessionTool
from punie.domain.catalog import ToolCatalog
from punie.domain.discovery import ToolPlan
from punie.domain.errors import ToolDisabledError, UnknownToolError
from punie.domain.session import DiscoveryReport

BuildTools: TypeAlias = Callable[[ToolPlan], "tuple[SessionTool, ...]"]


@define
class Toolbox:
    """Holds the current tools and renews them when the client says that its own changed.

    Lives as long as the session. `watch` runs in the session's task group and does the asking again; whoever wants
    the current tools waits until every change announced so far was taken in, so that the next model request sees it.
    """

    discover: DiscoverTools
    build: BuildTools
    disabled: frozenset[str] = frozenset()
    _tools: Mapping[str, SessionTool] = field(factory=dict[str, SessionTool], init=False)
    _catalog: ToolCatalog = field(factory=ToolCatalog, init=False)
    _announced: int = field(default=0, init=False)
    _taken_in: int = field(default=0, init=False)
    _wake: anyio.Event = field(factory=anyio.Event, init=False)
    _done: anyio.Event = field(factory=anyio.Event, init=False)

    async def fill(self) -> DiscoveryReport:
        """Ask and build: once when the session opens, again by `watch`."""
        discovery = await self.discover()
        tools = self.build(discovery.plan)
        self._tools = {tool.descriptor.name: tool for tool in tools}
        self._catalog = ToolCatalog(tool.descriptor for tool in tools).without(self.disabled)
        return discovery.report

    def mark_stale(self) -> None:
        """The client's tools changed; returns at once."""
        self._announced += 1
        self._wake.set()

    async def watch(self) -> None:
        """Ask again after every announcement, until cancelled.

        A burst counts once, and announcements that come during an asking cause exactly one more.
        """
        while True:
            await self._wake.wait()
            self._wake = anyio.Event()
            taking_in = self._announced
            await self.fill()
            self._taken_in = taking_in
            self._done.set()
            self._done = anyio.Event()

    async def current(self) -> ToolCatalog:
        """What is offered, every change announced until now taken in."""
        announced = self._announced
        while self._taken_in < announced:
            await self._done.wait()
        return self._catalog

    def find(self, name: str) -> SessionTool:
        """The tool of that name. Raises `UnknownToolError`, with near names, or `ToolDisabledError`."""
        if name in self.disabled and name in self._tools:
            raise ToolDisabledError(name)
        tool = self._tools.get(name)
        if tool is None:
            raise UnknownToolError(name, tuple(difflib.get_close_matches(name, self._catalog.names, n=3)))
        return tool
