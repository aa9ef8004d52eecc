"""The values from which a session is built: the decisions about it, and what its process shares with all sessions."""

from __future__ import annotations

import logging

from attrs import field, frozen

from punie.application.desk.approvals import Approvals
from punie.application.sessions.kept_record import KeptRecord, KeptSession
from punie.application.sessions.recorder import EngineMemory, MemoryRecord, SessionRecord
from punie.application.sessions.stored import StoredSessions
from punie.application.tools.terminals.get_shell_info import ShellInfo
from punie.application.turns.model_shelf import ContextGauge, ModelShelf
from punie.bootstrap.plugins import PlugIns
from punie.bootstrap.settings.settings import Settings
from punie.domain.servers.server import ServerConfig
from punie.domain.session.session import SessionSpec
from punie.ports.engine import Engine, EngineSession
from punie.ports.machine import Clock
from punie.ports.servers import ServerApprovals, ServerListings
from punie.ports.sessions import UsageLedger
from shellsight.surroundings import ShellParser


@frozen
class Conversation:
    """The engine of a session and the memory that the engine continues from; lives as long as the session.

    `kept` is the session's place in the store, None where the session ends with its process.
    """

    engine: Engine
    shelf: ModelShelf
    kept: KeptSession | None = None
    memory: EngineMemory = field(factory=EngineMemory)

    @classmethod
    async def of(
        cls, stored: StoredSessions, engine: Engine, shelf: ModelShelf, taken: KeptSession | None
    ) -> Conversation:
        """The conversation of a session that was taken up, or a new one. Raises `SessionStoreError`."""
        if taken is None or taken.summary is None:
            return cls(engine, shelf, taken)
        return cls(engine, shelf, taken, await stored.memory(taken.summary.id, engine))

    def opened(self, session_id: str) -> EngineSession:
        """The engine's side of the conversation."""
        return self.memory.opened(self.engine, session_id)

    def record(self, clock: Clock, log: logging.Logger) -> SessionRecord:
        """The record of the session's events."""
        return MemoryRecord() if self.kept is None else KeptRecord(self.kept, clock, log)

    def gauge(self, size_tokens: int | None) -> ContextGauge:
        """Counts the use of a context of that size and the cost, continuing from the session's former figures."""
        if self.kept is None:
            return ContextGauge(size_tokens)
        return ContextGauge(size_tokens, continued=self.kept.summary is not None, before=self.kept.context)


@frozen
class SessionSetup:
    """Everything that is decided about a session before its parts are built; lives as long as the session."""

    id: str
    spec: SessionSpec
    settings: Settings
    conversation: Conversation
    servers: tuple[ServerConfig, ...]
    plug_ins: PlugIns
    log: logging.Logger


@frozen
class Shared:
    """Values that all sessions of a process share; lives as long as the process."""

    shell: ShellInfo
    parser: ShellParser
    usage_ledger: UsageLedger
    approvals: Approvals
    listings: ServerListings
    server_approvals: ServerApprovals
