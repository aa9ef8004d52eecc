"""The registry of a session's MCP servers and their tools (ruling R-11)."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable

import anyio
from anyio.abc import TaskGroup
from attrs import define, field, frozen

from punie.application.own_task_group import OwnTaskGroup
from punie.application.servers.known_server import Asking, KnownServer, Surroundings, Tools
from punie.domain.errors import AmbiguousToolError, UnknownServerError, UnknownToolError
from punie.domain.servers.names import SEPARATOR, may_be_of
from punie.domain.servers.records import merged
from punie.domain.servers.server import RefreshDelta, ServerConfig, ServerInfo, ServerOrigin, ServerStatus, ToolInfo
from punie.domain.tools.tool import ToolResult
from punie.domain.values.json_value import JsonObject
from punie.ports.servers import ServerApprovals, ServerUnavailableError
from punie.ports.tools import CallProgress

LATE_S = 0.3
"""How long whoever does not want to wait waits for a server that kept somebody waiting in vain before."""

RENEW_S = 1.0
"""How long a model request waits for the new list of a server that said it changed; later it is in the next one."""

_STRENGTH = {ServerOrigin.CLIENT: 0, ServerOrigin.PROJECT: 1, ServerOrigin.USER: 2}


@frozen
class KnownTools:
    """What can be told without asking anybody: tools that were listed, and servers that never listed any."""

    tools: Tools
    unlisted: tuple[str, ...]


def _ignore(_server: str) -> None:
    """Nobody listens."""


@define(eq=False)
class ServerRegistry(OwnTaskGroup):
    """Which servers there are, and what they offer; an async context manager that lives as long as its session.

    Nothing is started before its tools are asked for, and nothing of a project's before a person approved exactly
    that. Each server is asked in a task of its own, once however many wait for it, and one that hangs or breaks holds
    up nobody but who waits for it. Of servers with one name the client's counts, then the project's, then the user's.
    `hear` is told the name of a server whose tools changed.
    """

    configs: Iterable[ServerConfig]
    around: Surroundings
    approvals: ServerApprovals
    hear: Callable[[str], None] = _ignore
    _known: dict[str, KnownServer] = field(factory=dict[str, KnownServer], init=False)

    def __attrs_post_init__(self) -> None:
        for config in sorted(self.configs, key=lambda config: _STRENGTH[config.origin]):
            if config.name in self._known:
                self.around.log.info("server %s of %s: another one of that name counts", config.name, config.place)
            else:
                self._known[config.name] = KnownServer(config, self.around, self._heard)

    def _heard(self, server: str) -> None:
        self.hear(server)

    async def _let_go(self, tasks: TaskGroup) -> None:
        tasks.cancel_scope.cancel()

    async def list_servers(self) -> tuple[ServerInfo, ...]:
        """Every configured server and how it stands; starts nothing (S4-04)."""
        kept = await self.around.listings.last(self.around.directory)
        waiting = await self._unapproved(self._known.values())
        rows: list[ServerInfo] = []
        for known in self._known.values():
            info = known.info(kept.get(known.name))
            if known.name in waiting:
                info = ServerInfo(
                    info.name, info.command, ServerStatus.NEEDS_APPROVAL, info.tools, info.cache_age_s,
                    waiting[known.name],
                )  # fmt: skip
            rows.append(info)
        return tuple(rows)

    async def list_tools(self, server: str | None = None, *, within_s: float | None = None) -> Tools:
        """The tools of that server, or of all that can be used, asking those whose list does not hold any more.

        With `within_s`, whoever has not answered by then is left out, or served as it was; it goes on being asked, and
        is there the next time. Whoever was waited for in vain is given `LATE_S` from then on, until it has listed its
        tools. One that fails is served as it was. Raises `UnknownServerError`, and for a named server that never
        listed anything `ServerUnavailableError`.
        """
        wanted = await self._usable(server)
        asked = [(known, known.ask(self.tasks)) for known in wanted if not known.fresh]
        with anyio.move_on_after(within_s):
            await _all_done(asking for known, asking in asked if not known.late)
        with anyio.move_on_after(None if within_s is None else LATE_S):
            await _all_done(asking for known, asking in asked if known.late)
        for known, asking in asked:
            known.late = not asking.done.is_set()
        if server is not None and wanted[0].tools is None:
            raise ServerUnavailableError(wanted[0].message or f"The server {server} is still starting. Try again.")
        return tuple(tool for known in wanted for tool in known.tools or ())

    async def known(self) -> KnownTools:
        """What the usable servers listed last, in this process or an earlier one; starts nothing.

        What an earlier one heard counts only where the server is still reached in the same way. A connected server
        whose list holds no longer is asked again, and waited for as long as `RENEW_S`.
        """
        usable = await self._usable(None)
        with anyio.move_on_after(RENEW_S):
            await _all_done([known.ask(self.tasks) for known in usable if known.outdated])
        kept = await self.around.listings.last(self.around.directory)
        found: list[ToolInfo] = []
        unlisted: list[str] = []
        for known in usable:
            tools, before = known.tools, kept.get(known.name)
            if tools is None and before is not None and before.fingerprint == known.config.fingerprint:
                tools = before.tools
            if tools is None:
                unlisted.append(known.name)
            else:
                found += tools
        return KnownTools(tuple(found), tuple(unlisted))

    async def get_tool(self, name: str) -> ToolInfo:
        """The tool of that qualified name, asking its server alone; or of that bare name, where one server has it.

        Raises `UnknownToolError` with near names, `AmbiguousToolError` with the candidates, and where the server of
        that name is down `ServerUnavailableError`.
        """
        owner = next((known.name for known in self._known.values() if may_be_of(known.name, name)), None)
        tools = await self.list_tools(owner)
        found = [tool for tool in tools if tool.qualified == name]
        found = found or [tool for tool in tools if tool.name == name]
        if not found:
            raise UnknownToolError(name, _near(name, tools))
        if len(found) > 1:
            raise AmbiguousToolError(name, tuple(sorted(tool.qualified for tool in found)))
        return found[0]

    async def refresh(self, server: str | None = None, *, force: bool = False) -> RefreshDelta:
        """Ask that server, or all that can be used, whether the last list still holds or not; gives what is different.

        An asking that runs already will do, unless `force`. The delta is to what was known before, if need be by an
        earlier process. Raises `UnknownServerError`, and `ServerUnavailableError` for a named one that may not run.
        """
        askings = [known.ask(self.tasks, anew=force) for known in await self._usable(server)]
        await _all_done(askings)
        broken = {} if server is not None else {
            known.name: known.config.problem for known in self._known.values()
            if known.config.problem and not known.config.disabled
        }  # fmt: skip
        return merged([*(asking.delta for asking in askings), RefreshDelta(errors=broken)])

    async def call(self, tool: ToolInfo, arguments: JsonObject, progress: CallProgress) -> ToolResult:
        """Call it, at most once. Raises `ServerUnavailableError` where it was not sent, `UnknownServerError`."""
        known = (await self._usable(tool.server))[0]
        return await known.call(tool.name, arguments, progress)

    def sent_along(self, server: str) -> JsonObject:
        """What each call of that server carries whose tool takes it, and that the model does not give itself."""
        return self._known[server].config.sent_along

    async def _usable(self, server: str | None) -> list[KnownServer]:
        """The named one, or all, that may be used now. Raises for a named one that may not."""
        if server is not None and server not in self._known:
            near = difflib.get_close_matches(server, self._known, n=3, cutoff=0.5)
            raise UnknownServerError(server, tuple(near))
        wanted = list(self._known.values()) if server is None else [self._known[server]]
        reasons = {known.name: why for known in wanted if (why := _why_not(known)) is not None}
        reasons |= await self._unapproved(wanted)
        if server in reasons:
            raise ServerUnavailableError(reasons[server])
        return [known for known in wanted if known.name not in reasons]

    async def _unapproved(self, wanted: Iterable[KnownServer]) -> dict[str, str]:
        """Those of a project that nobody approved as they are now, and what to do about it."""
        theirs = [known for known in wanted if known.config.origin is ServerOrigin.PROJECT and not _why_not(known)]
        if not theirs:
            return {}
        approved = await self.approvals.approved(self.around.directory)
        return {
            known.name: f"The project's server {known.name} is not started before you approve it: "
            f"`punie servers approve {known.name}` shows what it would run."
            for known in theirs
            if approved.get(known.name) != known.config.fingerprint
        }


def _why_not(known: KnownServer) -> str | None:
    if known.config.disabled:
        return f"The server {known.name} is disabled in its file."
    return known.config.problem


async def _all_done(askings: Iterable[Asking]) -> None:
    for asking in askings:
        await asking.done.wait()


def _near(name: str, tools: Iterable[ToolInfo]) -> tuple[str, ...]:
    """Qualified names of tools whose own names are nearly so; the server's part counts only beyond that."""
    names: dict[str, list[str]] = {}
    for tool in tools:
        names.setdefault(tool.name, []).append(tool.qualified)
    bare = name.partition(SEPARATOR)[2] or name
    close = difflib.get_close_matches(bare, names, n=3)
    return tuple(qualified for called in close for qualified in sorted(names[called]))[:3]
