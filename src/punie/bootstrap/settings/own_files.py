"""Punie's own settings and state on this machine: what no tool of a session may write."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from punie.bootstrap.settings.files import pipelines_folder, skills_folder, user_settings_file
from punie.bootstrap.settings.state import database_file
from punie.domain.values.paths import is_inside

HOME_ENTRIES = ("config.toml", "mcp.json", "skills", "state", "logs", "pipelines", "plugins")
"""What lies below `PUNIE_HOME`; the directory itself may hold projects as well."""


def own_files(environ: Mapping[str, str], cwd: str) -> tuple[str, ...]:
    """Absolute paths of them, as they are named and with links followed.

    A directory that the session's own lies in is left out, else nothing could be written there at all: of that one,
    the files are listed that are known by name.
    """
    found = {variant for path in _named(environ) for variant in (os.path.abspath(path), os.path.realpath(path))}  # noqa: PTH100 - links are followed in the other variant alone
    here = os.path.realpath(cwd)
    return tuple(sorted(path for path in found if not is_inside(here, (path,))))


def _named(environ: Mapping[str, str]) -> Iterator[Path]:
    settings, database = user_settings_file(environ), database_file(environ)
    yield from (settings, settings.with_name(f"{settings.name}.bak"), settings.with_name("mcp.json"))
    yield from (skills_folder(environ), pipelines_folder(environ))
    yield from (database.with_name(database.name + ending) for ending in ("", "-wal", "-shm", "-journal"))
    yield database.with_name("credentials.json")
    yield database.parent
    if environ.get("PUNIE_HOME"):
        yield from (Path(environ["PUNIE_HOME"]) / entry for entry in HOME_ENTRIES)
    elif not environ.get("PUNIE_CONFIG"):
        yield settings.parent
