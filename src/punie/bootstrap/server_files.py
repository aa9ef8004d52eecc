"""The places of the files that configure MCP servers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from attrs import evolve

from punie.adapters.local.server_files import FILE_NAME, ConfiguredServers, servers_in_files
from punie.application.policy.allowed import server_allowed
from punie.bootstrap.optional_parts import user_settings
from punie.bootstrap.settings.files import user_settings_file
from punie.bootstrap.settings.keys import ALLOWED_SERVERS
from punie.domain.servers.entries import broken
from punie.domain.servers.server import ServerConfig


def user_servers_file(environ: Mapping[str, str]) -> Path:
    """`mcp.json` beside the user's settings."""
    return user_settings_file(environ).with_name(FILE_NAME)


def permitted(configs: Iterable[ServerConfig], environ: Mapping[str, str]) -> tuple[ServerConfig, ...]:
    """The servers, those made unusable that `allowed.servers` forbids. Raises `SettingsError`."""
    settings = user_settings(environ, {})
    patterns = settings[ALLOWED_SERVERS] or ()
    why = f"{ALLOWED_SERVERS.name} of {settings.origins.get(ALLOWED_SERVERS.name)} does not allow it"
    return tuple(one if server_allowed(patterns, one) else broken(one, why) for one in configs)


def configured_servers(environ: Mapping[str, str], cwd: str) -> ConfiguredServers:
    """As `servers_in_files`, of the project in that absolute directory and the user. Raises `SettingsError`."""
    found = servers_in_files(environ, cwd, user_servers_file(environ))
    return evolve(found, configs=permitted(found.configs, environ)) if found.configs else found
