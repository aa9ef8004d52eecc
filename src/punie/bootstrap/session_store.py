"""Which store the sessions are kept in: the user's own database, or a PostgreSQL server that others share."""

from __future__ import annotations

import importlib.util
import logging
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeAlias

from punie.bootstrap.settings.files import database_file
from punie.bootstrap.settings.keys import SESSION_STORE
from punie.bootstrap.settings.settings import Settings, load_settings
from punie.domain.errors import SettingsError

if TYPE_CHECKING:
    from punie.adapters.storage.sessions.postgres_sessions import PostgresSessionStore
    from punie.adapters.storage.sessions.user_file import SqliteSessionStore

    KeptStore: TypeAlias = SqliteSessionStore | PostgresSessionStore


def user_settings(environ: Mapping[str, str], flags: Mapping[str, str | None]) -> Settings:
    """The settings without any project's. Raises `SettingsError`."""
    return load_settings(environ, flags, os.devnull)


def session_store(environ: Mapping[str, str], settings: Settings, log: logging.Logger) -> KeptStore:
    """The store that those settings name; nothing is opened, or connected, before it is used.

    Raises `SettingsError` where the library for it is not installed.
    """
    from punie.adapters.local.clock import LocalClock
    from punie.adapters.local.programs.process_table import LocalProcessTable

    url = settings[SESSION_STORE]
    if url is None:
        from punie.adapters.storage.sessions.user_file import SqliteSessionStore

        return SqliteSessionStore(database_file(environ), log, LocalProcessTable(), LocalClock())
    if importlib.util.find_spec("psycopg") is None:
        key = SESSION_STORE.name
        why = f"{key} names a PostgreSQL server, and the library for it is not installed: install punie[postgres]"
        raise SettingsError(settings.origins.get(key, key), why)
    from punie.adapters.storage.sessions.postgres_sessions import PostgresSessionStore

    return PostgresSessionStore(url, log, LocalProcessTable())
