"""Tools as `punie tools` shows them: as JSON for programs, as text for people (INTERFACES.md section 1)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import cast

from attrs import frozen

from punie.adapters.console.tables import table
from punie.application.offer.registry import ToolRegistry
from punie.domain.tools.availability import LeftOut
from punie.domain.tools.definition import estimated_tokens
from punie.domain.tools.execution import ResourceEstimate
from punie.domain.tools.metadata import Capability, Permission
from punie.domain.tools.tool import ToolDescriptor
from punie.domain.values.display import display_safe
from punie.domain.values.json_value import thaw_object


@frozen
class Listed:
    """A tool in a listing; `reason` says why it is left out, None for one that the session has."""

    tool: ToolDescriptor
    enabled: bool
    reason: str | None = None

    @property
    def summary(self) -> str:
        """Its description, and what a person should know before relying on it (S2-47)."""
        details = self.tool.details
        marks = {"disabled": not self.enabled, "deprecated": details.deprecated, "experimental": details.experimental}
        said = [f"[{word}]" for word, holds in marks.items() if holds]
        return " ".join([*said, self.tool.description])


def listed(registry: ToolRegistry, tools: Iterable[ToolDescriptor]) -> list[Listed]:
    """These tools of the registry, ready to be shown."""
    return [Listed(tool, registry.is_enabled(tool.name)) for tool in tools]


def left_out(registry: ToolRegistry) -> list[Listed]:
    """The tools that the session does not have, with reasons."""
    return [_left_out(left) for left in registry.left_out]


def _left_out(left: LeftOut) -> Listed:
    return Listed(left.tool, enabled=False, reason=left.reason)


def as_entry(entry: Listed) -> dict[str, object]:
    """One entry of `tools list --json`."""
    tool = entry.tool
    told: dict[str, object] = {
        "name": tool.name,
        "source": tool.source.value,
        "kind": tool.kind.value,
        "description": tool.description,
        "enabled": entry.enabled,
        "tokens": estimated_tokens(tool),
        "deprecated": tool.details.deprecated,
        "experimental": tool.details.experimental,
    }
    return told if entry.reason is None else {**told, "reason": entry.reason}


def as_full_entry(entry: Listed) -> dict[str, object]:
    """What `tools show --json` says of one tool."""
    tool, details = entry.tool, entry.tool.details
    return {
        **as_entry(entry),
        "title": tool.title,
        "inputSchema": thaw_object(tool.parameters),
        "outputSchema": None if tool.output_schema is None else thaw_object(tool.output_schema),
        "annotations": thaw_object(tool.annotations),
        "categories": list(tool.categories),
        "tags": list(tool.tags),
        "requiresPermission": tool.requires_permission,
        "requiresConfirmation": details.requires_confirmation,
        "version": details.version,
        "author": details.author,
        "helpUrl": details.help_url,
        "requiredCapabilities": _flags(details.required_capabilities),
        "requiredPermissions": _flags(details.required_permissions),
        "platforms": list(details.platforms),
        "dependencies": list(details.dependencies),
        "estimatedTimeMs": details.estimated_time_ms,
        "maxInputBytes": details.max_input_bytes,
        "examples": [
            {"arguments": thaw_object(example.arguments), "description": example.description}
            for example in details.examples
        ],
        "metadata": thaw_object(tool.metadata),
    }


def as_estimate(estimate: ResourceEstimate) -> dict[str, object]:
    """What a call will probably take, for `tools check --json`: null where nothing is known."""
    return {
        "timeMs": estimate.time_ms,
        "bytesIn": estimate.bytes_in,
        "bytesOut": estimate.bytes_out,
        "files": list(estimate.files),
        "fileBytes": estimate.file_bytes,
        "memoryMb": estimate.memory_mb,
    }


def as_check(name: str, problems: Sequence[str], estimate: ResourceEstimate | None) -> str:
    """The same for a person, below what keeps the call from running."""
    said = [f"{name} would run without a question."] if not problems else [f"{name} would not run unasked:", *problems]
    known = {} if estimate is None else {key: value for key, value in as_estimate(estimate).items() if _says(value)}
    lines = [*said, *(f"{_words(key)}  {_shown(value)}" for key, value in known.items())]
    return "".join(f"{display_safe(line)}\n" for line in lines)


def as_table(entries: Sequence[Listed], missing: Sequence[Listed] = ()) -> str:
    """The tools for a person, then those that are left out."""
    rows = [
        (entry.tool.name, entry.tool.source.value, entry.tool.kind.value, estimated_tokens(entry.tool), entry.summary)
        for entry in entries
    ]
    shown = table(("NAME", "SOURCE", "KIND", "TOKENS", "DESCRIPTION"), rows) if rows else "There are no such tools.\n"
    if not missing:
        return shown
    reasons = [(entry.tool.name, entry.tool.source.value, entry.reason) for entry in missing]
    return f"{shown}\nLeft out:\n{table(('NAME', 'SOURCE', 'REASON'), reasons)}"


def as_page(entry: Listed) -> str:
    """Everything about one tool for a person."""
    told = as_full_entry(entry)
    rows = [(_words(key), _shown(value)) for key, value in told.items() if key not in _BELOW and _says(value)]
    return "".join(_page(entry, rows, told))


_BELOW = {"name", "description", "inputSchema", "outputSchema", "examples"}


def _page(entry: Listed, rows: Sequence[tuple[str, str]], told: dict[str, object]) -> Iterator[str]:
    yield f"{entry.tool.name}: {display_safe(entry.summary)}\n\n"
    width = max(len(name) for name, _ in rows)
    yield from (f"{name.ljust(width)}  {display_safe(value)}\n" for name, value in rows)
    for key in ("inputSchema", "outputSchema"):
        if told[key] is not None:
            yield f"\n{_words(key)}:\n{display_safe(json.dumps(told[key], indent=2, ensure_ascii=False))}\n"
    if entry.tool.details.examples:
        yield "\nexamples:\n"
    for example in entry.tool.details.examples:
        arguments = json.dumps(thaw_object(example.arguments), ensure_ascii=False)
        yield display_safe(f"  punie tools call {entry.tool.name} '{arguments}'   # {example.description}\n")


def _flags(value: Capability | Permission) -> list[str]:
    return [(part.name or "").lower() for part in value]


def _says(value: object) -> bool:
    """Whether a line about it would tell anything: numbers and true do, what is empty or false does not."""
    return value is not None and value is not False and value not in ([], {}, "")


def _shown(value: object) -> str:
    if isinstance(value, str):
        return " ".join(value.split())
    if value is True:
        return "yes"
    if isinstance(value, list) and all(isinstance(item, str) for item in cast("list[object]", value)):
        return ", ".join(cast("list[str]", value))
    return json.dumps(value, ensure_ascii=False).strip('"')


def _words(key: str) -> str:
    """A key as words: `inputSchema` is `input schema`."""
    return "".join(f" {char.lower()}" if char.isupper() else char for char in key)
