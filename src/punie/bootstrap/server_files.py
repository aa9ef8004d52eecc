"""Where servers are configured, and what is there (INTERFACES.md section 4)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import cast

from attrs import frozen

from punie.bootstrap.settings_files import MAX_FILE_BYTES, bytes_of, user_settings_file
from punie.domain.expansion import Variables
from punie.domain.json_value import json_type
from punie.domain.jsonc import Twice, parse_jsonc
from punie.domain.server_entries import EntrySource, broken, server_of
from punie.domain.servers import ServerConfig, ServerOrigin

FILE_NAME = "mcp.json"
PROJECT_FILES = (".punie/mcp.json", ".mcp.json")
"""In order of strength."""

MOST_SERVERS = 200
ROOT_KEYS = ("mcpServers", "servers")
_NO_SERVERS = {"inputs", "$schema", "version"}


class ServersFileError(Exception):
    """A file cannot be read as a whole; the sentence names it and says why."""


@frozen
class ConfiguredServers:
    """Every server that the files name, the stronger file first, and what is wrong with files as a whole."""

    configs: tuple[ServerConfig, ...] = ()
    problems: tuple[str, ...] = ()


def user_servers_file(environ: Mapping[str, str]) -> Path:
    """`mcp.json` beside the user's settings."""
    return user_settings_file(environ).with_name(FILE_NAME)


def configured_servers(environ: Mapping[str, str], cwd: str) -> ConfiguredServers:
    """The servers of the project in that absolute directory, and the user's.

    A file that cannot be read is named in `problems`, and the others count. Of two definitions with one name the
    project's counts, of the project's that in `.punie/mcp.json`.
    """
    variables = Variables(environ, cwd, str(Path.home()))
    files = [(ServerOrigin.PROJECT, Path(cwd) / name) for name in PROJECT_FILES]
    files.append((ServerOrigin.USER, user_servers_file(environ)))
    found: dict[str, ServerConfig] = {}
    problems: list[str] = []
    read: set[Path] = set()
    for origin, path in files:
        if path.absolute() in read:
            continue
        read.add(path.absolute())
        try:
            configs = _servers_in(path, EntrySource(origin, str(path), variables))
        except ServersFileError as error:
            problems.append(str(error))
            continue
        for config in configs:
            other = found.setdefault(config.name, config)
            if other is not config:
                problems.append(f"{path}: the server {config.name!r} is not used: {other.place} has one of that name")
    return ConfiguredServers(tuple(found.values()), tuple(problems))


def _servers_in(path: Path, source: EntrySource) -> tuple[ServerConfig, ...]:
    try:
        data = bytes_of(path)
    except (FileNotFoundError, NotADirectoryError):
        return ()
    except OSError as error:
        raise ServersFileError(f"{path}: {error.strerror or 'it cannot be read'}") from error
    if len(data) > MAX_FILE_BYTES:
        raise ServersFileError(f"{path}: it is larger than {MAX_FILE_BYTES} bytes")
    if not data.strip():
        return ()
    try:
        parsed = parse_jsonc(data.decode("utf-8"))
    except ValueError as error:
        raise ServersFileError(f"{path}: it is not valid JSON ({error})") from error
    if not isinstance(parsed, dict):
        raise ServersFileError(f"{path}: it must hold an object, not {json_type(parsed)}")
    return _servers_of(cast("dict[str, object]", parsed), source)


def _servers_of(parsed: dict[str, object], source: EntrySource) -> tuple[ServerConfig, ...]:
    key = next((key for key in ROOT_KEYS if key in parsed), None)
    if key is None:
        table: object = parsed
        if any(not isinstance(value, dict) for name, value in parsed.items() if name not in _NO_SERVERS):
            raise ServersFileError(f'{source.place}: it has no "mcpServers"')
    else:
        table = parsed[key]
    if not isinstance(table, dict):
        raise ServersFileError(f'{source.place}: "{key}" must be an object, not {json_type(table)}')
    if len(cast("dict[str, object]", table)) > MOST_SERVERS:
        raise ServersFileError(f"{source.place}: it names more than {MOST_SERVERS} servers")
    again = table.again if isinstance(table, Twice) else frozenset[str]()
    entries = cast("dict[str, object]", table)
    made = (
        server_of(name, entry, source) for name, entry in entries.items() if key is not None or name not in _NO_SERVERS
    )
    return tuple(
        broken(config, f"the server {config.name!r} is defined twice; keep one of them")
        if config.name in again
        else config
        for config in made
    )
