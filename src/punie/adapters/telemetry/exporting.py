"""Sending spans over OTLP/HTTP to the collector that the environment names, in a thread of the SDK."""

from __future__ import annotations

import logging
import threading

import anyio.to_thread
from attrs import define, field
from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

from punie.adapters.telemetry.decisions import SentAuditTrail
from punie.adapters.telemetry.spans import AGENT, SessionSpans
from punie.ports.permission import AuditTrail

LIBRARY = "opentelemetry"
TIMEOUT_S = 5.0
"""How long one batch may take with its repetitions, where `OTEL_EXPORTER_OTLP_TIMEOUT` is not set."""

FLUSH_S = 0.9
"""How long the end of the process waits for spans that were not sent yet."""


@define(eq=False)
class Telemetry:
    """The spans of all sessions; lives as long as the process. Spans that cannot be sent are dropped and logged once.

    The provider is not the process's, so that spans of other libraries are not sent with them.
    """

    version: str
    log: logging.Logger
    with_content: bool = False
    timeout_s: float | None = None
    with_logs: bool = False
    _provider: TracerProvider = field(init=False)
    _logs: LoggerProvider | None = field(default=None, init=False)

    def __attrs_post_init__(self) -> None:
        _hear(self.log)
        self._provider = TracerProvider(resource=_resource(self.version), shutdown_on_exit=False)
        self._provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(timeout=self.timeout_s)))

    def watch(self, session_id: str) -> SessionSpans:
        """The spans of a new session."""
        tracer = self._provider.get_tracer("punie", self.version)
        return SessionSpans(tracer, session_id, self.version, self.with_content)

    def beside(self, trail: AuditTrail) -> AuditTrail:
        """The trail, whose decisions are also sent, where a place for logs is named."""
        if not self.with_logs:
            return trail
        self._logs = LoggerProvider(resource=_resource(self.version), shutdown_on_exit=False)
        self._logs.add_log_record_processor(BatchLogRecordProcessor(OTLPLogExporter(timeout=self.timeout_s)))
        return SentAuditTrail(trail, self._logs.get_logger("punie", self.version), self.with_content)

    async def aclose(self) -> None:
        """Send the waiting spans and logs, in bounded time; the others are lost."""
        senders = (self._provider, *([self._logs] if self._logs is not None else []))
        closing = [threading.Thread(target=one.shutdown, name="punie-telemetry", daemon=True) for one in senders]
        for thread in closing:  # side by side: a collector may take the ones and not the others
            thread.start()
        with anyio.move_on_after(FLUSH_S):
            for thread in closing:
                await anyio.to_thread.run_sync(thread.join, FLUSH_S, abandon_on_cancel=True)


def _resource(version: str) -> Resource:
    """The service as the environment describes it, with our name where it has none."""
    found = Resource.create({"service.version": version})
    if str(found.attributes.get("service.name", "")).startswith("unknown_service"):
        return found.merge(Resource({"service.name": AGENT}))
    return found


class _Once(logging.Handler):
    """Warnings of the library in our log, only the first as a warning: each batch repeats them."""

    def __init__(self, log: logging.Logger) -> None:
        super().__init__(logging.WARNING)
        self._log = log
        self._said = False

    def emit(self, record: logging.LogRecord) -> None:
        level = logging.DEBUG if self._said else logging.WARNING
        self._said = True
        self._log.log(level, "telemetry: %s (said once; turns go on without it)", record.getMessage())


def _hear(log: logging.Logger) -> None:
    library = logging.getLogger(LIBRARY)
    library.propagate = False
    library.handlers[:] = [_Once(log)]
