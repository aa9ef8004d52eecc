"""The memory with which an engine goes on in a session that another process, or another engine, began."""

from __future__ import annotations

import logging

from attrs import frozen

from punie.domain.errors import SessionStoreError, UnreadableSnapshotError
from punie.domain.session.log import EngineSnapshot
from punie.domain.session.transcript import Transcript, TranscriptBuilder
from punie.ports.engine import Engine, EngineSession
from punie.ports.sessions import SessionStore

PAGE = 500
"""How many entries of a log are read, and in memory, at once."""


@frozen
class EngineMemory:
    """An engine's own snapshot, where there is one, and the transcript since then; both empty for a new session."""

    snapshot: bytes | None = None
    since: Transcript = ()

    def opened(self, engine: Engine, session_id: str) -> EngineSession:
        """The engine's conversation. A new one is opened by its id alone: not every engine accepts a memory."""
        if self.snapshot is None and not self.since:
            return engine.open(session_id)
        return engine.open(session_id, self.snapshot, self.since)


@frozen
class StoredMemory:
    """Reads engine memories from the store; lives as long as the caller needs it."""

    store: SessionStore
    session_id: str
    log: logging.Logger

    async def of(self, engine: Engine) -> EngineMemory:
        """The memory for that engine; the whole log where the engine cannot read its snapshot.

        Raises `SessionStoreError`.
        """
        memory = await self.named(engine.name)
        if memory.snapshot is None:
            return memory
        try:
            await memory.opened(engine, self.session_id).aclose()
        except UnreadableSnapshotError as error:
            self.log.warning("session %s: it goes on from its log: %s", self.session_id, error.cause)
            return await self.whole()
        return memory

    async def named(self, engine: str) -> EngineMemory:
        """As `of`, by the engine's name, without a test whether the engine can read the snapshot."""
        snapshot = await self._snapshot()
        if snapshot is None or snapshot.engine != engine:
            return await self.whole()
        since = await self._taken(snapshot.sequence)
        return await self.whole() if since.forgotten else EngineMemory(snapshot.state, since.build())

    async def whole(self) -> EngineMemory:
        """The whole log as a transcript. Raises `SessionStoreError`."""
        return EngineMemory(None, (await self._taken(0)).build())

    async def _snapshot(self) -> EngineSnapshot | None:
        try:
            return await self.store.snapshot(self.session_id)
        except SessionStoreError as error:
            self.log.warning("session %s: it goes on from its log: %s", self.session_id, error)
            return None

    async def _taken(self, after: int) -> TranscriptBuilder:
        builder = TranscriptBuilder()
        while page := await self.store.read(self.session_id, after, PAGE):
            for entry in page:
                builder.take(entry.event)
            after = page[-1].sequence
        return builder
