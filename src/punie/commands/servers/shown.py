"""Servers, and what a refresh brought, for people and programs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence

from attrs import frozen

from punie.adapters.console.output import table
from punie.domain.servers.server import (
    HttpTransport,
    RefreshDelta,
    ServerConfig,
    ServerInfo,
    ServerStatus,
    StdioTransport,
)
from punie.domain.values.display import display_exact, one_line

_COMMAND_WIDTH = 48


@frozen
class Check:
    """What came of connecting to a server: how it stands now, and how long it took to list its tools."""

    info: ServerInfo
    took_ms: float | None = None

    @property
    def ok(self) -> bool:
        """Whether it answered."""
        return self.info.status is ServerStatus.READY


def servers_json(servers: Sequence[ServerInfo]) -> str:
    """The servers as one JSON list, on one line."""
    return json.dumps([_row(info) for info in servers])


def checks_json(checks: Sequence[Check]) -> str:
    """The checks likewise."""
    return json.dumps([{**_row(check.info), "ok": check.ok, "elapsedMs": check.took_ms} for check in checks])


def delta_json(delta: RefreshDelta) -> str:
    """The delta as one JSON object, on one line."""
    names = {"added": list(delta.added), "removed": list(delta.removed), "changed": list(delta.changed)}
    return json.dumps({**names, "errors": dict(delta.errors)})


def servers_text(servers: Sequence[ServerInfo]) -> str:
    """A row a server, and below the table a line about each that needs attention."""
    if not servers:
        return "No servers are configured. Name them under mcpServers in .mcp.json here, or in your own mcp.json.\n"
    rows = [
        [info.name, one_line(info.command, _COMMAND_WIDTH), info.status.value, _count(info), _age(info.cache_age_s)]
        for info in servers
    ]
    notes = "".join(f"{one_line(info.name)}: {one_line(info.message, 1_000)}\n" for info in servers if info.message)
    return table(("name", "command", "status", "tools", "age"), rows) + notes


def check_text(check: Check) -> str:
    """One line about one server."""
    name = one_line(check.info.name)
    if check.ok:
        return f"ok    {name}: {check.info.tools} tools in {check.took_ms or 0:.0f} ms\n"
    return f"{'FAIL' if check.info.status is ServerStatus.ERROR else 'skip'}  {name}: {_reason(check.info)}\n"


def delta_text(delta: RefreshDelta) -> str:
    """A line for whatever is different."""
    said = "".join(_delta_lines(delta))
    return said or "Nothing changed.\n"


def approval_text(config: ServerConfig) -> str:
    """Exactly what would be run or reached, whole: a person decides on it. Values of env and headers are not shown."""
    lines = [
        f"{display_exact(config.name)} ({display_exact(config.place)}) would ",
        f"\n  {display_exact(config.line)}\n",
    ]
    match config.transport:
        case StdioTransport() as program:
            lines.insert(1, "run on this machine, with your rights:")
            lines.append(f"  in {display_exact(program.cwd or '')}\n")
            lines += _names("with the variables", program.env)
        case HttpTransport() as address:
            lines.insert(1, "be reached at:")
            lines += _names("with the headers", address.headers)
        case _:
            pass
    return "".join(lines)


def _names(what: str, values: Mapping[str, str]) -> Iterator[str]:
    if values:
        yield f"  {what} {', '.join(display_exact(name) for name in values)}\n"


def _delta_lines(delta: RefreshDelta) -> Iterator[str]:
    for sign, names in (("+", delta.added), ("-", delta.removed), ("~", delta.changed)):
        yield from (f"{sign} {one_line(name)}\n" for name in names)
    yield from (f"! {one_line(server)}: {one_line(why, 1_000)}\n" for server, why in delta.errors.items())


def _row(info: ServerInfo) -> dict[str, object]:
    row: dict[str, object] = {
        "name": info.name,
        "command": info.command,
        "status": info.status.value,
        "tools": info.tools,
        "cacheAgeS": None if info.cache_age_s is None else round(info.cache_age_s, 1),
    }
    return {**row, "message": info.message} if info.message else row


def _count(info: ServerInfo) -> str:
    return "-" if info.tools is None else str(info.tools)


def _reason(info: ServerInfo) -> str:
    return one_line(info.message, 2_000) or f"it is {info.status.value}"


def _age(seconds: float | None) -> str:
    if seconds is None:
        return "-"
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"
