"""What is remembered of servers across processes: who was approved, and what each offered last."""

from __future__ import annotations

from collections.abc import Iterable

from attrs import frozen

from punie.domain.servers.server import RefreshDelta, ToolInfo
from punie.domain.values.json_value import json_text


@frozen
class ServerApproval:
    """A person let a project's server run: exactly what `fingerprint` stands for, in that absolute directory.

    `at` is seconds since the epoch.
    """

    directory: str
    name: str
    fingerprint: str
    at: float


@frozen
class KeptListing:
    """The tools a server listed last, for sessions in that absolute directory; `listed_at` is seconds since the epoch.

    `fingerprint` is that of the definition it was reached by: of another one it says nothing about what is there now.
    `legacy` is as in `ServerListing`.
    """

    directory: str
    server: str
    fingerprint: str
    listed_at: float
    tools: tuple[ToolInfo, ...]
    legacy: bool = False


def compared(before: Iterable[ToolInfo], after: Iterable[ToolInfo]) -> RefreshDelta:
    """What came, went and changed, each by qualified name and sorted; the order of keys in a schema is no change."""
    old = {tool.qualified: tool for tool in before}
    new = {tool.qualified: tool for tool in after}
    return RefreshDelta(
        added=tuple(sorted(new.keys() - old.keys())),
        removed=tuple(sorted(old.keys() - new.keys())),
        changed=tuple(sorted(name for name in old.keys() & new.keys() if _said(old[name]) != _said(new[name]))),
    )


def merged(deltas: Iterable[RefreshDelta]) -> RefreshDelta:
    """Several servers' deltas as one."""
    every = tuple(deltas)
    return RefreshDelta(
        added=tuple(sorted(name for delta in every for name in delta.added)),
        removed=tuple(sorted(name for delta in every for name in delta.removed)),
        changed=tuple(sorted(name for delta in every for name in delta.changed)),
        errors={server: why for delta in every for server, why in delta.errors.items()},
    )


def _said(tool: ToolInfo) -> str:
    return json_text((
        tool.name, tool.title, tool.description, tool.input_schema, tool.output_schema, tool.annotations,
    ))  # fmt: skip
