"""Parts of the process that need an optional library: sessions on a PostgreSQL server, and the sending of spans."""

from __future__ import annotations

import importlib.util
import logging
import os
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from punie import __version__
from punie.bootstrap.settings.files import database_file
from punie.bootstrap.settings.keys import SESSION_STORE
from punie.bootstrap.settings.settings import Settings
from punie.bootstrap.settings.sources import load_settings
from punie.domain.errors import SettingsError
from punie.domain.values.display import one_line

if TYPE_CHECKING:
    from punie.adapters.storage.sessions.postgres import PostgresSessionStore
    from punie.adapters.storage.sessions.user_file import SqliteSessionStore
    from punie.adapters.telemetry.exporting import Telemetry

    KeptStore: TypeAlias = SqliteSessionStore | PostgresSessionStore


def user_settings(environ: Mapping[str, str], flags: Mapping[str, str | None]) -> Settings:
    """The settings without any project's. Raises `SettingsError`."""
    return load_settings(environ, flags, os.devnull)


def session_store(environ: Mapping[str, str], settings: Settings, log: logging.Logger) -> KeptStore:
    """The store of sessions in the settings; nothing is opened or connected before the first use.

    Raises `SettingsError` where the library for it is not installed.
    """
    store = _store(environ, settings, log)
    if settings.state_folder is not None:
        from punie.adapters.local.files.file_history import forget_history

        store.forget = partial(forget_history, settings.state_folder)
    return store


def _store(environ: Mapping[str, str], settings: Settings, log: logging.Logger) -> KeptStore:
    from punie.adapters.local.machine import LocalClock, LocalProcessTable

    url = settings[SESSION_STORE]
    if url is None:
        from punie.adapters.storage.sessions.user_file import SqliteSessionStore

        return SqliteSessionStore(database_file(environ), log, LocalProcessTable(), LocalClock())
    if importlib.util.find_spec("psycopg") is None:
        from punie.mechanics.installation import install_line

        key, how = SESSION_STORE.name, install_line("postgres")
        why = f"{key} names a PostgreSQL server, and the library for it is not installed: {how}"
        raise SettingsError(settings.origins.get(key, key), why)
    from punie.adapters.storage.sessions.postgres import PostgresSessionStore

    return PostgresSessionStore(url, log, LocalProcessTable())


ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
PROTOCOLS = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
TIMEOUTS = ("OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "OTEL_EXPORTER_OTLP_TIMEOUT")
WITH_CONTENT = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
SPOKEN = "http/protobuf"
NEEDED = ("opentelemetry.sdk", "opentelemetry.exporter.otlp.proto.http")


def telemetry_of(environ: Mapping[str, str], log: logging.Logger) -> Telemetry | None:
    """The sender of the sessions' spans; None where the environment asks for none, or where the log says why not."""
    off = _is_true(environ.get("OTEL_SDK_DISABLED")) or environ.get("OTEL_TRACES_EXPORTER", "otlp") == "none"
    if off or not any(environ.get(name, "").strip() for name in ENDPOINTS):
        return None
    protocol = next((environ[name] for name in PROTOCOLS if environ.get(name)), SPOKEN)
    if protocol != SPOKEN:
        log.warning("telemetry: spans are sent as %s alone, and %s is asked for: none are sent", SPOKEN, protocol)
        return None
    if not all(_installed(name) for name in NEEDED):
        from punie.mechanics.installation import install_line

        log.warning("telemetry: an endpoint is set, and the library for it is not installed: %s", install_line("otel"))
        return None
    try:
        from punie.adapters.telemetry.exporting import TIMEOUT_S, Telemetry

        timeout_s = None if any(environ.get(name) for name in TIMEOUTS) else TIMEOUT_S
        telemetry = Telemetry(__version__, log, _is_true(environ.get(WITH_CONTENT)), timeout_s)
    except Exception as error:  # noqa: BLE001 - another library may raise anything here
        log.warning("telemetry: its variables cannot be used, and no spans are sent: %s", one_line(str(error), 300))
        return None
    log.info("telemetry: spans are sent to the endpoint that the environment names")
    return telemetry


def _is_true(value: str | None) -> bool:
    return (value or "").strip().lower() == "true"


def _installed(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ImportError:  # the package around it is missing
        return False
