"""The engine of a session and the memory that the engine continues from."""

from __future__ import annotations

import logging

from attrs import field, frozen

from punie.application.sessions.broken_turn import DurableTurns
from punie.application.sessions.kept_record import KeptRecord, KeptSession
from punie.application.sessions.recorder import EngineMemory, MemoryRecord, SessionRecord
from punie.application.sessions.stored import StoredSessions
from punie.application.sessions.turn_places import TurnPlaces
from punie.application.turns.model_shelf import ContextGauge, ModelShelf
from punie.domain.session.session import SessionSpec
from punie.domain.tools.catalog import ClientCapabilities
from punie.ports.engine import Engine, EngineSession
from punie.ports.machine import Clock
from punie.ports.turns import TurnBook, TurnOrder


@frozen
class Conversation:
    """The engine of a session and the memory that the engine continues from; lives as long as the session.

    `kept` is the session's place in the store, None where the session ends with its process.
    """

    engine: Engine
    shelf: ModelShelf
    kept: KeptSession | None = None
    memory: EngineMemory = field(factory=EngineMemory)
    book: TurnBook | None = None
    places: TurnPlaces = field(factory=TurnPlaces)

    @classmethod
    async def of(
        cls, stored: StoredSessions, engine: Engine, shelf: ModelShelf, taken: KeptSession | None
    ) -> Conversation:
        """The conversation of a session that was taken up, or a new one. Raises `SessionStoreError`."""
        if taken is None or taken.summary is None:
            return cls(engine, shelf, taken, book=stored.book, places=stored.places)
        memory = await stored.memory(taken.summary.id, engine, taken.broken)
        return cls(engine, shelf, taken, memory, stored.book, stored.places)

    def opened(self, session_id: str) -> EngineSession:
        """The engine's side of the conversation."""
        return self.memory.opened(self.engine, session_id)

    def record(self, clock: Clock, log: logging.Logger) -> SessionRecord:
        """The record of the session's events."""
        return MemoryRecord() if self.kept is None else KeptRecord(self.kept, clock, log)

    def durable(self, session_id: str, spec: SessionSpec, capabilities: ClientCapabilities) -> DurableTurns | None:
        """The book for the session's turns; None where they end with their process."""
        if self.book is None or self.kept is None:
            return None
        alone = not (spec.servers or capabilities.any_tool or capabilities.discover_tools)
        whose, groups = spec.person.owner, tuple(sorted(spec.person.groups))
        directories = spec.additional_directories
        order = TurnOrder("", session_id, spec.cwd, directories, capabilities, alone, whose, groups=groups)
        return DurableTurns(self.book, order, self.places, self.kept.broken)

    def gauge(self, size_tokens: int | None) -> ContextGauge:
        """Counts the use of a context of that size and the cost, continuing from the session's former figures."""
        if self.kept is None:
            return ContextGauge(size_tokens)
        return ContextGauge(size_tokens, continued=self.kept.summary is not None, before=self.kept.context)
