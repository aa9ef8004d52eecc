"""The three tiers: from what a client said to which tools a session gets (rulings R-01, R-03, R-06).

A pure function of values: whoever asked the client hands the answer in, whoever builds the tools takes the plan out.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum

from attrs import frozen

from punie.domain.tools.catalog import ToolCatalog

STATIC_TOOLS = (
    "read_file",
    "write_file",
    "run_command",
    "get_terminal_output",
    "release_terminal",
    "wait_for_terminal_exit",
    "kill_terminal",
)
"""The seven (R-01), in offered order."""

EXTENDED_TOOLS = (
    "edit_file",
    "list_files",
    "search_text",
    "get_shell_info",
    "git_status",
    "git_diff",
    "git_log",
    "git_add_commit",
    "python_lint",
    "python_types",
    "python_tests",
)
"""The extended set (R-01, the Python checks last), in offered order after the seven."""

TERMINAL_TOOLS = STATIC_TOOLS[2:]
BUILT_IN_TOOLS = STATIC_TOOLS + EXTENDED_TOOLS
DISK_TOOLS = ("list_files", "search_text")
"""ACP has no method for these two: beside a client that reads files they read this machine's disk."""


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
        return self.read_text_file or self.write_text_file or self.terminal


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
    capabilities: ClientCapabilities, answer: CatalogAnswer | None, local: LocalTools = LocalTools.AUTO
) -> ToolPlan:
    """Apply the fallback policy. `answer` is None where the client was not asked or did not answer in time."""
    if answer is None or not answer.catalog:
        tier = Tier.CAPABILITIES if capabilities.any_tool else Tier.DEFAULT
        return ToolPlan(tier, ToolCatalog(), tuple(_lower_tiers(capabilities, local)))
    lower = _lower_tiers(capabilities, local) if answer.extends else ()
    return ToolPlan(Tier.CATALOG, answer.catalog, tuple(tool for tool in lower if tool.name not in answer.catalog))


def _lower_tiers(capabilities: ClientCapabilities, local: LocalTools) -> Iterator[BuiltIn]:
    by_client = frozenset(_by_client(capabilities))
    by_machine = frozenset(_by_machine(capabilities, local))
    for name in BUILT_IN_TOOLS:
        if name in by_client:
            yield BuiltIn(name, Server.CLIENT)
        elif name in by_machine:
            yield BuiltIn(name, Server.LOCAL)


def _by_client(capabilities: ClientCapabilities) -> Iterator[str]:
    if capabilities.read_text_file:
        yield "read_file"
    if capabilities.write_text_file:
        yield "write_file"
    if capabilities.read_text_file and capabilities.write_text_file:
        yield "edit_file"
    if capabilities.terminal:
        yield from TERMINAL_TOOLS


def _by_machine(capabilities: ClientCapabilities, local: LocalTools) -> tuple[str, ...]:
    if local is LocalTools.NEVER:
        return ()
    if not capabilities.any_tool:
        return BUILT_IN_TOOLS
    if local is LocalTools.ALWAYS:
        return EXTENDED_TOOLS
    return DISK_TOOLS if capabilities.read_text_file else ()
