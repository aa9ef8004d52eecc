"""Decisions, sent beside the audit trail that keeps them: as log records of OpenTelemetry, and to be counted."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from attrs import asdict, frozen
from opentelemetry._logs import Logger, SeverityNumber

from punie.domain.permission.audit import AuditRow, ChainReport, DecisionRecord
from punie.domain.permission.rules import Verdict
from punie.ports.permission import AuditTrail

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
