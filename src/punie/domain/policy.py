"""Whether a call may run, a person must be asked, or it is refused (ruling R-16).

`decide` is pure and total: the same tool and facts give the same decision, and it never raises. The rule engine of
a later issue grows here; until then the decision is R-16 alone.
"""

from __future__ import annotations

from enum import StrEnum

from attrs import frozen

from punie.domain.metadata import Permission
from punie.domain.paths import Location
from punie.domain.tool import ToolDescriptor, ToolKind, ToolSource

UNASKED_BUILT_INS = frozenset(
    {
        "read_file",
        "list_files",
        "search_text",
        "get_shell_info",
        "git_status",
        "git_diff",
        "git_log",
        "get_terminal_output",
        "release_terminal",
        "wait_for_terminal_exit",
        "kill_terminal",
    }
)
"""Built-in tools that run without a question: they read inside the roots, or act on the session's own terminals."""

_EFFECTS = {ToolKind.EDIT: "changes a file", ToolKind.EXECUTE: "runs a program or writes to the repository"}

HARMLESS_KINDS = frozenset({ToolKind.READ, ToolKind.SEARCH, ToolKind.THINK})


_ANSWERABLE = frozenset({ToolSource.IDE, ToolSource.PLUG_IN})
"""Strangers whose word is taken for what only reads: the user's own IDE, and packages the user installed."""


class Verdict(StrEnum):
    """What the policy says of one call."""

    ALLOW = "allow"
    ASK = "ask"
    DENY = "deny"


@frozen
class Decision:
    """A verdict with the rule that gave it and the reason in words."""

    verdict: Verdict
    rule: str
    reason: str


@frozen
class Facts:
    """What is known of a call beyond its words: where its paths lie once links were followed."""

    locations: tuple[Location, ...] = ()


def decide(tool: ToolDescriptor, facts: Facts) -> Decision:
    """The verdict for one call of `tool`."""
    outside = [where.path for where in facts.locations if not where.inside]
    if outside:
        return Decision(Verdict.DENY, "roots", f"{outside[0]} is outside the session's directories")
    secret = [where.path for where in facts.locations if where.secret]
    if secret:
        return Decision(Verdict.ASK, "secrets", f"{secret[0]} may hold secrets")
    if tool.requires_permission:
        return Decision(Verdict.ASK, "tool", f"{tool.name} says that it requires permission")
    if tool.details.requires_confirmation:
        return Decision(Verdict.ASK, "tool", f"{tool.name} says that each call of it must be confirmed")
    if tool.source is ToolSource.BUILT_IN:
        return _built_in(tool)
    if tool.source in _ANSWERABLE and _harmless(tool):
        return Decision(Verdict.ALLOW, "kind", f"{tool.name} only reads, as its kind says")
    return Decision(Verdict.ASK, "source", f"{tool.name} is served by the {tool.source.value} and may have effects")


def _harmless(tool: ToolDescriptor) -> bool:
    """Whether a stranger's tool only looks, as far as everything it says of itself goes (S2-43)."""
    only_reads = tool.details.required_permissions in Permission.READ
    return tool.kind in HARMLESS_KINDS and not tool.destructive and only_reads


def _built_in(tool: ToolDescriptor) -> Decision:
    if tool.name in UNASKED_BUILT_INS:
        return Decision(Verdict.ALLOW, "read-only", f"{tool.name} has no effect outside the session")
    return Decision(Verdict.ASK, "effect", f"{tool.name} {_EFFECTS.get(tool.kind, 'has an effect')}")
