"""Sessions beyond their process: begun, taken up again, replayed, listed, forked and forgotten."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

from attrs import define, frozen

from punie.application.session_recorder import KeptSession
from punie.domain.errors import LeaseLostError, SessionStoreError, UnknownSessionError
from punie.domain.model_choice import ModelChoice
from punie.domain.session import SessionSpec
from punie.domain.session_log import LogEntry, SessionBegun, SessionSummary, chosen
from punie.domain.session_recovery import LastTurn
from punie.domain.transcript import Transcript, TranscriptBuilder
from punie.ports.clock import Clock
from punie.ports.engine import Engine, EngineSession
from punie.ports.session_store import SessionLease, SessionStore

PAGE = 500
"""Entries that are read at once: what a long log costs in memory."""

Tell = Callable[[LogEntry], Awaitable[None]]


@frozen
class TakenUp:
    """A session's place in the store, as this process has it now; `summary` is None for a new one.

    `choice` is the model that worked in it last, where its log says so.
    """

    kept: KeptSession
    summary: SessionSummary | None = None
    choice: ModelChoice | None = None


@frozen
class EngineMemory:
    """What an engine goes on with: its own snapshot, where there is one, and what happened since."""

    snapshot: bytes | None = None
    since: Transcript = ()

    def opened(self, engine: Engine, session_id: str) -> EngineSession:
        """The conversation. A new one is opened by its id alone: not every engine can go on with something."""
        if self.snapshot is None and not self.since:
            return engine.open(session_id)
        return engine.open(session_id, self.snapshot, self.since)


@define
class StoredSessions:
    """Lives as long as the process. `keeps` says of a directory whether what is said there is to be kept at all."""

    store: SessionStore
    clock: Clock
    log: logging.Logger
    keeps: Callable[[str], bool] = lambda _cwd: True

    async def begin(self, session_id: str, spec: SessionSpec) -> TakenUp | None:
        """A place for a new session; None where it is not to be kept, or cannot be, which the log says."""
        if not self.keeps(spec.cwd):
            return None
        begun = SessionBegun(spec.cwd, spec.additional_directories)
        try:
            kept = KeptSession(self.store, await self.store.acquire(session_id), next_sequence=2)
            try:
                await self.store.append(kept.lease, (LogEntry(1, self.clock.epoch_s(), begun),))
            except BaseException:
                await kept.let_go()
                raise
        except (SessionStoreError, LeaseLostError) as error:
            self.log.warning("sessions: this one is not kept: %s", error)
            return None
        return TakenUp(kept)

    async def take_up(self, session_id: str) -> TakenUp:
        """Become a stored session's writer, and close what a dead process left open.

        Raises `UnknownSessionError`, `SessionHeldError` and `SessionStoreError`.
        """
        if await self.store.summary(session_id) is None:
            raise UnknownSessionError(session_id)
        lease = await self.store.acquire(session_id)
        try:
            choice = await self._close_open_turn(lease)
            summary = await self.store.summary(session_id) or SessionSummary(session_id, "")
        except BaseException:
            await KeptSession(self.store, lease).let_go()
            raise
        kept = KeptSession(self.store, lease, summary.last_sequence + 1, titled=summary.title is not None)
        return TakenUp(kept, summary, choice)

    async def memory(self, session_id: str, engine: str) -> EngineMemory:
        """What the engine of that name goes on with. Raises `SessionStoreError`."""
        return await memory_of(self.store, session_id, engine)

    async def fork(self, session_id: str, new_id: str) -> None:
        """Copy a session as it stands, also while somebody works in it. Raises as `take_up`."""
        if await self.store.summary(session_id) is None:
            raise UnknownSessionError(session_id)
        lease = await self.store.acquire(new_id)
        try:
            await self.store.fork(session_id, lease)
        finally:
            await KeptSession(self.store, lease).let_go()

    async def replay(self, session_id: str, tell: Tell) -> None:
        """Tell the whole log in order; a page at a time is in memory, however long it is."""
        after = 0
        while page := await self.store.read(session_id, after, PAGE):
            for entry in page:
                await tell(entry)
            after = page[-1].sequence

    async def _close_open_turn(self, lease: SessionLease) -> ModelChoice | None:
        """Write down the end of a turn whose process died, so that every reader of the log sees the same.

        Gives the model that the session was left with, which its last turns tell as well.
        """
        session_id = lease.session_id
        after = max(0, await self.store.last_prompt(session_id) - 1)
        turn, choice = LastTurn(), None
        while page := await self.store.read(session_id, after, PAGE):
            for entry in page:
                turn.take(entry.event)
            choice = chosen((entry.event for entry in page), choice)
            after = page[-1].sequence
        closing, now = turn.owed(), self.clock.epoch_s()
        if closing:
            summary = await self.store.summary(session_id)  # it counts what a newer version wrote as well
            last = after if summary is None else max(after, summary.last_sequence)
            entries = tuple(LogEntry(last + place, now, event) for place, event in enumerate(closing, start=1))
            await self.store.append(lease, entries, lasting=True)
        return choice


async def memory_of(store: SessionStore, session_id: str, engine: str) -> EngineMemory:
    """As `StoredSessions.memory`."""
    snapshot = await store.snapshot(session_id)
    if snapshot is not None and snapshot.engine == engine:
        since = await _transcript(store, session_id, snapshot.sequence)
        return EngineMemory(None if since.forgotten else snapshot.state, since.build())
    return EngineMemory(None, (await _transcript(store, session_id, 0)).build())


async def _transcript(store: SessionStore, session_id: str, after: int) -> TranscriptBuilder:
    builder = TranscriptBuilder()
    while page := await store.read(session_id, after, PAGE):
        for entry in page:
            builder.take(entry.event)
        after = page[-1].sequence
    return builder
