"""Sending spans, logs and metrics over OTLP/HTTP to the collector that the environment names, in threads of the SDK."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

import anyio.to_thread
from attrs import asdict, define, field, frozen
from opentelemetry._logs import Logger, SeverityNumber
from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

from punie.adapters.telemetry.metrics import Load, MeasuredLedger, Metrics
from punie.adapters.telemetry.spans import AGENT, SessionSpans
from punie.domain.permission.audit import AuditRow, ChainReport, DecisionRecord
from punie.domain.permission.rules import Verdict
from punie.domain.session.events import SessionEvent
from punie.domain.session.log import LoggedEvent
from punie.ports.permission import AuditTrail
from punie.ports.sessions import UsageLedger

LIBRARY = "opentelemetry"
TIMEOUT_S = 5.0
"""How long one sending may take with its repetitions, where `OTEL_EXPORTER_OTLP_TIMEOUT` is not set."""

FLUSH_S = 0.9
"""How long the end of the process waits for data that was not sent yet."""


Watch: TypeAlias = Callable[[float, LoggedEvent | SessionEvent], None]
"""Hears the events of a session with their times; neither waits nor fails."""


@define(eq=False)
class Telemetry:
    """Spans, logs and metrics of all sessions; lives as long as the process.

    `signals` are those of `SIGNALS` that are sent, each with the seconds that one sending may take with its
    repetitions, None for the library's own choice. Data that cannot be sent is dropped, which is logged once. `load` is
    called in another thread. The providers are not the process's, so that spans of other libraries are not sent too.
    """

    version: str
    log: logging.Logger
    with_content: bool = False
    signals: Mapping[str, float | None] = field(factory=lambda: {"traces": TIMEOUT_S})
    load: Load = lambda: (0, 0, 0)
    _spans: TracerProvider | None = field(default=None, init=False)
    _logs: LoggerProvider | None = field(default=None, init=False)
    _meters: MeterProvider | None = field(default=None, init=False)
    _metrics: Metrics | None = field(default=None, init=False)

    def __attrs_post_init__(self) -> None:
        _hear(self.log)
        resource, signals = _resource(self.version), self.signals
        if "traces" in signals:
            self._spans = TracerProvider(resource=resource, shutdown_on_exit=False)
            self._spans.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(timeout=signals["traces"])))
        if "logs" in signals:
            self._logs = LoggerProvider(resource=resource, shutdown_on_exit=False)
            self._logs.add_log_record_processor(BatchLogRecordProcessor(OTLPLogExporter(timeout=signals["logs"])))
        if "metrics" in signals:
            reader = PeriodicExportingMetricReader(OTLPMetricExporter(timeout=signals["metrics"]))
            self._meters = MeterProvider([reader], resource, shutdown_on_exit=False)
            self._metrics = Metrics(self._meters.get_meter("punie", self.version), self.load)

    def watch(self, session_id: str) -> Watch:
        """The hearer of the events of a new session."""
        hearers: list[Watch] = [] if self._metrics is None else [self._metrics.hear]
        if self._spans is not None:
            tracer = self._spans.get_tracer("punie", self.version)
            hearers.append(SessionSpans(tracer, session_id, self.version, self.with_content).take)

        def hear(at: float, event: LoggedEvent | SessionEvent) -> None:
            for each in hearers:
                each(at, event)

        return hear

    def beside(self, trail: AuditTrail) -> AuditTrail:
        """The trail, whose decisions are also sent and counted, as far as that is asked for."""
        if self._logs is not None:
            log = DecisionLog(self._logs.get_logger("punie", self.version), self.with_content)
            trail = SentAuditTrail(trail, log.decided)
        return trail if self._metrics is None else SentAuditTrail(trail, self._metrics.decided)

    def measured(self, ledger: UsageLedger) -> UsageLedger:
        """The ledger, whose records are also measured, where metrics are asked for."""
        return ledger if self._metrics is None else MeasuredLedger(ledger, self._metrics)

    async def aclose(self) -> None:
        """Send what waits, in bounded time; the rest is lost."""
        senders = [one for one in (self._spans, self._logs, self._meters) if one is not None]
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


EVENT = "punie.permission.decision"
CONTENT = frozenset({"title", "reason", "facts"})
"""The fields that quote what was asked for: sent only where contents are."""


@frozen
class DecisionLog:
    """Sends decisions as log records; lives as long as the process."""

    logger: Logger
    with_content: bool = False

    def decided(self, record: DecisionRecord) -> None:
        """Send a decision."""
        left_out = frozenset[str]() if self.with_content else CONTENT
        told = {f"punie.{name}": str(value) for name, value in asdict(record).items() if name not in {"at", *left_out}}
        denied = record.verdict is Verdict.DENY
        self.logger.emit(
            timestamp=int(record.at * 1e9),
            severity_number=SeverityNumber.WARN if denied else SeverityNumber.INFO,
            body=f"{record.verdict.value} {record.tool}",
            attributes=told,
            event_name=EVENT,
        )


@frozen
class SentAuditTrail(AuditTrail):
    """Tells of each decision as well; lives as long as the process. The trail is what counts: `tell` may lose one."""

    trail: AuditTrail
    tell: Callable[[DecisionRecord], None]

    def record(self, record: DecisionRecord) -> None:
        self.trail.record(record)
        self.tell(record)

    async def commit(self) -> None:
        await self.trail.commit()

    async def latest(self, limit: int) -> Sequence[AuditRow]:
        return await self.trail.latest(limit)

    async def verify(self, noted: str | None = None) -> ChainReport:
        return await self.trail.verify(noted)
