"""Where a session stands that outlives its process."""

from __future__ import annotations

from attrs import field, frozen

from punie.application.sessions.engine_memory import EngineMemory
from punie.application.sessions.recorder import KeptSession
from punie.application.sessions.stored import StoredSessions, TakenUp
from punie.application.turns.context_gauge import ContextGauge
from punie.ports.engine import Engine


@frozen
class Continued:
    """A session's place in the store, and what its engine goes on with; without a place it ends with its process."""

    kept: KeptSession | None = None
    memory: EngineMemory = field(factory=EngineMemory)
    is_new: bool = True

    @classmethod
    async def of(cls, stored: StoredSessions, engine: Engine, taken: TakenUp | None) -> Continued:
        """Read it. Raises `SessionStoreError`."""
        if taken is None or taken.summary is None:
            return cls(None if taken is None else taken.kept)
        return cls(taken.kept, await stored.memory(taken.summary.id, engine), is_new=False)

    def gauge(self, size_tokens: int | None) -> ContextGauge:
        """What its client is told of the context, and of what it cost."""
        before = None if self.kept is None else self.kept.context
        return ContextGauge(size_tokens, continued=not self.is_new, before=before)
