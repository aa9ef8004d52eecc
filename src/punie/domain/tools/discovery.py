"""The three tiers: from the answers of a client to the tools that its session gets."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Flag, StrEnum, auto

from attrs import frozen

from punie.domain.tools.catalog import ToolCatalog
from punie.domain.tools.metadata import Capability


class Tier(StrEnum):
    """The source of a session's tools; reported to the client."""

    CATALOG = "catalog"
    CAPABILITIES = "capabilities"
    DEFAULT = "default"


class LocalTools(StrEnum):
    """The setting `tools.local`: whether this machine may serve tools by itself."""

    AUTO = "auto"
    NEVER = "never"
    ALWAYS = "always"


class Serving(Flag):
    """The sides that may carry out a tool of Punie; all of them serve a client that has no methods for tools."""

    NOT_PLANNED = 0
    """Neither side: the tool is offered by the part of Punie that has its subject."""
    BY_CLIENT = auto()
    """The client, where it has the methods that the tool requires."""
    BESIDE_CLIENT = auto()
    """This machine, beside a client that reads files: ACP has no method for the tool."""
    BY_MACHINE = auto()
    """This machine, where the settings let it serve always."""


class Server(StrEnum):
    """The side that carries out a built-in tool."""

    CLIENT = "client"
    LOCAL = "local"


@frozen
class ClientCapabilities:
    """The capabilities that the client advertised in `initialize`; anything omitted is unsupported."""

    read_text_file: bool = False
    write_text_file: bool = False
    terminal: bool = False
    discover_tools: bool = False
    tool_events: bool = False
    elicitation_form: bool = False
    compaction: bool = False
    notices: bool = False

    @property
    def any_tool(self) -> bool:
        """Whether the client has any method for tools, which the tier *capabilities* needs."""
        return self.lends is not Capability.NONE

    @property
    def lends(self) -> Capability:
        """The capabilities that tools get by the client's own methods."""
        lent = Capability.READ_FILES if self.read_text_file else Capability.NONE
        if self.write_text_file:
            lent |= Capability.WRITE_FILES
        return lent | Capability.TERMINAL if self.terminal else lent


@frozen
class DroppedEntry:
    """A catalogue entry that could not be used, and the reason, in words for the IDE's author."""

    name: str
    reason: str


@frozen
class CatalogAnswer:
    """A whole answer to discovery, all pages read: the good entries in order, the bad ones with reasons."""

    catalog: ToolCatalog = ToolCatalog()
    dropped: tuple[DroppedEntry, ...] = ()
    extends: bool = False


@frozen
class OwnTool:
    """One tool of Punie as far as planning goes: the sides that may carry it out, and what it requires of them."""

    name: str
    serving: Serving
    requires: Capability = Capability.NONE

    def server(self, capabilities: ClientCapabilities, local: LocalTools) -> Server | None:
        """The side that carries the tool out for that client under that setting; None where neither does."""
        if Serving.BY_CLIENT in self.serving and not self.requires & ~capabilities.lends:
            return Server.CLIENT
        return Server.LOCAL if self._here(capabilities, local) else None

    def _here(self, capabilities: ClientCapabilities, local: LocalTools) -> bool:
        if local is LocalTools.NEVER:
            return False
        if not capabilities.any_tool:
            return True
        if local is LocalTools.ALWAYS:
            return Serving.BY_MACHINE in self.serving
        return Serving.BESIDE_CLIENT in self.serving and capabilities.read_text_file


@frozen
class BuiltIn:
    """One built-in tool of a plan, and the side that serves it."""

    name: str
    server: Server


@frozen
class ToolPlan:
    """The tools that a session offers: `catalog` first (the client's own tools), then `built_ins`."""

    tier: Tier
    catalog: ToolCatalog
    built_ins: tuple[BuiltIn, ...]

    @property
    def tools_of_tier(self) -> int:
        """The number of tools that the reported tier itself brought."""
        return len(self.catalog) if self.tier is Tier.CATALOG else len(self.built_ins)


def plan_tools(
    capabilities: ClientCapabilities,
    answer: CatalogAnswer | None,
    local: LocalTools = LocalTools.AUTO,
    own: Sequence[OwnTool] = (),
) -> ToolPlan:
    """The tools of a session: the client's catalogue, or one of the two lower tiers.

    `answer` is None where the client was not asked or did not answer in time; `own` are the tools of Punie that may be
    offered, in order. An entry of the answer replaces a tool of Punie by the same name.
    """
    servers = ((tool.name, tool.server(capabilities, local)) for tool in own)
    lower = tuple(BuiltIn(name, server) for name, server in servers if server is not None)
    if answer is None or not answer.catalog:
        return ToolPlan(Tier.CAPABILITIES if capabilities.any_tool else Tier.DEFAULT, ToolCatalog(), lower)
    beside = lower if answer.extends else ()
    return ToolPlan(Tier.CATALOG, answer.catalog, tuple(tool for tool in beside if tool.name not in answer.catalog))
