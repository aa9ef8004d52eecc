"""Where spans go: over OTLP/HTTP to whoever the environment names, by a thread of the SDK and never in a turn's way."""

from __future__ import annotations

import logging
import threading
from functools import partial

import anyio.to_thread
from attrs import define, field
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

from punie.adapters.telemetry.spans import AGENT, SessionSpans

LIBRARY = "opentelemetry"
TIMEOUT_S = 5.0
"""How long one batch may take, repetitions and all; whoever sets `OTEL_EXPORTER_OTLP_TIMEOUT` decides instead."""

FLUSH_S = 0.9
"""How long the end of the process waits for what was not sent yet."""


@define(eq=False)
class Telemetry:
    """All sessions' spans; lives as long as the process. What cannot be sent is dropped, and the log says so once.

    Its provider is its own and not the process's: no other library's spans come along.
    """

    version: str
    log: logging.Logger
    with_content: bool = False
    timeout_s: float | None = None
    _provider: TracerProvider = field(init=False)

    def __attrs_post_init__(self) -> None:
        _hear(self.log)
        self._provider = TracerProvider(resource=_resource(self.version), shutdown_on_exit=False)
        self._provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(timeout=self.timeout_s)))

    def watch(self, session_id: str) -> SessionSpans:
        """What takes that session's events."""
        tracer = self._provider.get_tracer("punie", self.version)
        return SessionSpans(tracer, session_id, self.version, self.with_content)

    async def aclose(self) -> None:
        """Send what waits, in bounded time; what cannot be sent by then is lost."""
        done = threading.Event()
        threading.Thread(target=_shut_down, args=(self._provider, done), name="punie-telemetry", daemon=True).start()
        await anyio.to_thread.run_sync(partial(done.wait, FLUSH_S), abandon_on_cancel=True)


def _shut_down(provider: TracerProvider, done: threading.Event) -> None:
    try:
        provider.shutdown()
    finally:
        done.set()


def _resource(version: str) -> Resource:
    """What the environment says of this service, and our name where it names none."""
    found = Resource.create({"service.version": version})
    if str(found.attributes.get("service.name", "")).startswith("unknown_service"):
        return found.merge(Resource({"service.name": AGENT}))
    return found


class _Once(logging.Handler):
    """The library's complaints in our log: the first as a warning, for it repeats itself with each batch."""

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
