"""The telemetry that the environment asks for, where the library for it is installed."""

from __future__ import annotations

import importlib.util
import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING

from punie import __version__
from punie.domain.values.display import one_line

if TYPE_CHECKING:
    from punie.adapters.telemetry.exporting import Telemetry

ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
PROTOCOLS = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
TIMEOUTS = ("OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "OTEL_EXPORTER_OTLP_TIMEOUT")
WITH_CONTENT = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
LOGS = ("OTEL_EXPORTER_OTLP_LOGS_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
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
        logs = environ.get("OTEL_LOGS_EXPORTER", "otlp") != "none" and any(environ.get(name) for name in LOGS)
        telemetry = Telemetry(__version__, log, _is_true(environ.get(WITH_CONTENT)), timeout_s, logs)
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
