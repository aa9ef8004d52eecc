"""The three tiers: from the answers of a client to the tools that its session gets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import Flag, StrEnum, auto

from attrs import frozen

from punie.domain.tools.catalog import ToolCatalog
from punie.domain.tools.metadata import Capability


class Tier(StrEnum):
    """Where a session's tools came from; reported to the client."""

    CATALOG = "catalog"
    CAPABILITIES = "capabilities"
    DEFAULT = "default"


class LocalTools(StrEnum):
    """The setting `tools.local`: what this machine may serve by itself (R-03)."""

    AUTO = "auto"
    NEVER = "never"
    ALWAYS = "always"


class Serving(Flag):
    """Who may carry out a tool of ours; each of them serves a client that has no methods for tools."""

    NOT_PLANNED = 0
    """Neither: whoever has what the tool works on offers it."""
    BY_CLIENT = auto()
    """The client, where it has the methods that the tool requires."""
    BESIDE_CLIENT = auto()
    """This machine, beside a client that reads files: ACP has no method for the tool."""
    BY_MACHINE = auto()
    """This machine, where the settings let it serve always."""


class Server(StrEnum):
    """Who carries out a built-in tool."""

    CLIENT = "client"
    LOCAL = "local"


@frozen
class ClientCapabilities:
    """What the client advertised in `initialize`; anything omitted is unsupported (A-02)."""

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
        """Whether tier *capabilities* has anything to stand on."""
        return self.lends is not Capability.NONE

    @property
    def lends(self) -> Capability:
        """What tools may do by the client's own methods."""
        lent = Capability.READ_FILES if self.read_text_file else Capability.NONE
        if self.write_text_file:
            lent |= Capability.WRITE_FILES
        return lent | Capability.TERMINAL if self.terminal else lent


@frozen
class DroppedEntry:
    """A catalogue entry that could not be used, and why, in words for the IDE's author."""

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
    """One tool of ours as far as planning goes: who may carry it out, and what it requires of them."""

    name: str
    serving: Serving
    requires: Capability = Capability.NONE

    def server(self, capabilities: ClientCapabilities, local: LocalTools) -> Server | None:
        """Who carries the tool out for that client under that setting; None where nothing does."""
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
    """One built-in tool of a plan and who serves it."""

    name: str
    server: Server


@frozen
class ToolPlan:
    """What a session offers: `catalog` first (the client's own tools), then `built_ins`."""

    tier: Tier
    catalog: ToolCatalog
    built_ins: tuple[BuiltIn, ...]

    @property
    def tools_of_tier(self) -> int:
        """How many tools the reported tier itself brought (INTERFACES.md section 3)."""
        return len(self.catalog) if self.tier is Tier.CATALOG else len(self.built_ins)


def plan_tools(
    capabilities: ClientCapabilities,
    answer: CatalogAnswer | None,
    local: LocalTools = LocalTools.AUTO,
    own: Sequence[OwnTool] = (),
) -> ToolPlan:
    """Apply the fallback policy.

    `answer` is None where the client was not asked or did not answer in time; `own` are the tools of ours that may be
    offered, in order. Of an answer with an entry of the same name the entry wins.
    """
    lower = tuple(_lower_tiers(capabilities, local, own))
    if answer is None or not answer.catalog:
        return ToolPlan(Tier.CAPABILITIES if capabilities.any_tool else Tier.DEFAULT, ToolCatalog(), lower)
    beside = lower if answer.extends else ()
    return ToolPlan(Tier.CATALOG, answer.catalog, tuple(tool for tool in beside if tool.name not in answer.catalog))


def _lower_tiers(capabilities: ClientCapabilities, local: LocalTools, own: Sequence[OwnTool]) -> Iterator[BuiltIn]:
    for tool in own:
        server = tool.server(capabilities, local)
        if server is not None:
            yield BuiltIn(tool.name, server)
