"""Grants, pinned definitions and the audit trail in memory: for tests, and where the database cannot be used."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence

from attrs import define, field

from punie.domain.permission.audit import AuditRow, ChainReport, ChainStart, DecisionRecord, check_chain
from punie.domain.permission.grants import StoredGrant, ToolPin
from punie.ports.permission import AuditTrail, GrantStore, PinName, ToolPins

KEPT_ROWS = 10_000
"""How many rows of the trail are kept; beyond that the oldest are forgotten."""


@define
class MemoryGrantStore(GrantStore):
    """Keeps grants as long as the process lives."""

    _grants: dict[str, StoredGrant] = field(factory=dict[str, StoredGrant], init=False)

    async def usable(self) -> bool:
        return True

    async def active(self, now: float) -> Sequence[StoredGrant]:
        valid = (grant for grant in self._grants.values() if grant.expires_at > now)
        return tuple(sorted(valid, key=lambda grant: grant.created_at))

    async def add(self, grant: StoredGrant) -> bool:
        self._grants.pop(grant.id, None)
        self._grants[grant.id] = grant
        return True

    async def revoke(self, grant_id: str) -> bool:
        return self._grants.pop(grant_id, None) is not None

    async def purge(self, now: float) -> int:
        expired = [grant.id for grant in self._grants.values() if grant.expires_at <= now]
        for name in expired:
            del self._grants[name]
        return len(expired)


@define
class MemoryToolPins(ToolPins):
    """Keeps pins as long as the process lives."""

    _pins: dict[tuple[str, PinName], str] = field(factory=dict[tuple[str, PinName], str], init=False)

    async def pinned(self, directory: str) -> Mapping[PinName, str] | None:
        return {name: known for (where, name), known in self._pins.items() if where == directory}

    async def pin(self, pin: ToolPin) -> bool:
        self._pins[pin.directory, (pin.source, pin.server, pin.tool)] = pin.definition
        return True


@define
class MemoryAuditTrail(AuditTrail):
    """Keeps the end of the chain as long as the process lives; may be written from any one thread at a time."""

    kept: int = KEPT_ROWS
    _rows: deque[AuditRow] = field(factory=deque[AuditRow], init=False)
    _start: ChainStart = field(factory=ChainStart, init=False)

    def record(self, record: DecisionRecord) -> None:
        number, previous = self._start.number, self._start.previous
        if self._rows:
            number, previous = self._rows[-1].number + 1, self._rows[-1].hash
        self._rows.append(AuditRow.after(number, previous, record))
        while len(self._rows) > self.kept:
            gone = self._rows.popleft()
            self._start = ChainStart(gone.number + 1, gone.hash)

    async def commit(self) -> None:
        """It is written already."""

    async def latest(self, limit: int) -> Sequence[AuditRow]:
        return tuple(self._rows)[-limit:] if limit > 0 else ()

    async def verify(self) -> ChainReport:
        return check_chain(tuple(self._rows), self._start)
