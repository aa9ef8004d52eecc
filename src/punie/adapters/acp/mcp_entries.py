"""The servers that a client sends with a session (ACP `mcpServers`): each looked at on its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

import msgspec
from msgspec import Raw

from punie.domain.expansion import Variables
from punie.domain.server_entries import EntrySource, broken, server_of
from punie.domain.servers import ServerConfig, ServerOrigin

PLACE = "the client's mcpServers"


def decode_servers(raw: Sequence[Raw] | None, cwd: str) -> tuple[ServerConfig, ...]:
    """The entries as servers of the client; one that cannot be used says why, and so does a second of one name.

    Nothing in them is expanded: the client sends what it means.
    """
    found: dict[str, ServerConfig] = {}
    for position, entry in enumerate(raw or (), start=1):
        config = _decode(entry, position, cwd)
        if config.name in found:
            found[config.name] = broken(config, f"the server {config.name!r} is there twice")
        else:
            found[config.name] = config
    return tuple(found.values())


def _decode(raw: Raw, position: int, cwd: str) -> ServerConfig:
    source = EntrySource(ServerOrigin.CLIENT, PLACE, Variables({}, cwd, "", expands=False))
    try:
        entry = msgspec.json.decode(raw, type=dict[str, object])
    except (msgspec.DecodeError, RecursionError):
        return server_of(f"entry {position}", None, source)
    name = entry.get("name")
    if not isinstance(name, str):
        return broken(ServerConfig(f"entry {position}", None, source.origin, place=PLACE), "its name must be a text")
    pairs = {key: _pairs(entry[key]) for key in ("env", "headers") if key in entry}
    return server_of(name, {**entry, **pairs}, source)


def _pairs(value: object) -> object:
    """ACP's list of `{name, value}` as an object; anything else stays, to be refused by name."""
    if not isinstance(value, list):
        return value  # refused by its name
    items = cast("list[object]", value)
    if not all(isinstance(item, Mapping) for item in items):
        return items
    return {str(item.get("name")): item.get("value") for item in cast("list[Mapping[str, object]]", items)}
