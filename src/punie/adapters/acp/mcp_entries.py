"""The servers that a client sends with a session (ACP `mcpServers`): each looked at on its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

import msgspec
from attrs import evolve
from msgspec import Raw

from punie.domain.entry_fields import EntryError
from punie.domain.servers.entries import EntrySource, broken, check_name, server_of, with_ide_ways
from punie.domain.servers.server import ClientTransport, ServerConfig, ServerOrigin
from punie.domain.values.variables import Variables

PLACE = "the client's mcpServers"
_LONGEST_ID = 1_000


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
    if entry.get("type") == "acp":
        return _of_the_client(name, entry.get("serverId"))
    pairs = {key: _pairs(entry[key]) for key in ("env", "headers") if key in entry}
    return with_ide_ways(server_of(name, {**entry, **pairs}, source), cwd)


def _of_the_client(name: str, server_id: object) -> ServerConfig:
    """A server that the client runs itself, and reaches for us (unstable v1)."""
    config = ServerConfig(name, None, ServerOrigin.CLIENT, place=PLACE)
    try:
        check_name(name)
    except EntryError as error:
        return broken(config, str(error))
    if not isinstance(server_id, str) or not server_id or len(server_id) > _LONGEST_ID:
        return broken(config, f"its serverId must be a text of 1 to {_LONGEST_ID} characters")
    return evolve(config, transport=ClientTransport(server_id))


def _pairs(value: object) -> object:
    """ACP's list of `{name, value}` as an object; anything else stays, to be refused by name."""
    if not isinstance(value, list):
        return value  # refused by its name
    items = cast("list[object]", value)
    if not all(isinstance(item, Mapping) for item in items):
        return items
    return {str(item.get("name")): item.get("value") for item in cast("list[Mapping[str, object]]", items)}
