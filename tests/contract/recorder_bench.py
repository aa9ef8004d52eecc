"""A session's recorder on a bench: between a made-up client and a store in memory."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from attrs import define, field

from punie.application.sessions.kept_record import KeptRecord, KeptSession
from punie.application.sessions.recorder import SessionRecorder
from punie.ports.engine import EventSink
from tests.contract.peer_benches import FakeSinkBench, SinkBench
from tests.contract.session_benches import LOG, memory_sessions


@define(slots=False)
class RecorderBench(SinkBench):
    sink: EventSink
    lane: FakeSinkBench = field(factory=FakeSinkBench)

    async def heard(self, count: int) -> list[str]:
        return await self.lane.heard(count)

    async def listener_leaves(self) -> None:
        await self.lane.listener_leaves()


@asynccontextmanager
async def recorder() -> AsyncIterator[RecorderBench]:
    async with memory_sessions(Path()) as stores:
        lane, kept = FakeSinkBench(), KeptSession(stores.here, await stores.here.acquire("s"))
        async with SessionRecorder(lane.sink, stores.clock, KeptRecord(kept, stores.clock, LOG)) as made:
            yield RecorderBench(made, lane)
