"""A session's log that is only read, for tests of what is made from it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from punie.domain.session.log import LogEntry, Rewound
from tests.fakes.memory_sessions import MemorySessionStore


class EntriesOnly(MemorySessionStore):
    """A store of one session, to be read from and nothing else; `most` is the most entries that were asked for."""

    def __init__(self, entries: Iterable[LogEntry]) -> None:
        self.entries = tuple(entries)
        self.most = 0

    async def rewinds(self, session_id: str) -> Sequence[Rewound]:
        return tuple(entry.event for entry in self.entries if isinstance(entry.event, Rewound))

    async def read(self, session_id: str, after: int = 0, limit: int = 500) -> Sequence[LogEntry]:
        self.most = max(self.most, limit)
        first = self.entries[0].sequence if self.entries else 1
        place = max(0, after + 1 - first)
        return self.entries[place : place + limit]
