"""A session's log as the timeline of a page: the log is read twice, a few entries at a time.

The first reading outlines every turn, the second gives as many of the latest turns in full as a page has room for, so
that a session of any length takes the same memory.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing

from attrs import define

from punie.domain.session.log import LogEntry, SessionSummary
from punie.domain.session.open_turn import OUTLINE
from punie.domain.session.timeline import SessionOutline, Totals, TurnTimeline
from punie.domain.session.timeline_builder import TimelineBuilder
from punie.ports.sessions import SessionStore

ENTRIES_AT_ONCE = 100

PAGE_WEIGHT = 8_000_000
"""Characters of the turns that are shown in full, roughly."""

TURNS_IN_FULL = 200
TURNS_IN_OUTLINE = 400


@define
class SessionTrace:
    """The trace of one stored session; lives until its page is written. Methods raise `SessionStoreError`."""

    store: SessionStore
    summary: SessionSummary
    page_weight: int = PAGE_WEIGHT

    async def outline(self) -> SessionOutline:
        """The outline of every turn, and where the turns in full begin."""
        builder, totals, last = TimelineBuilder(OUTLINE), Totals(), 0
        turns: deque[TurnTimeline] = deque(maxlen=TURNS_IN_OUTLINE)
        async with aclosing(self._entries(0, None)) as entries:
            async for entry in entries:
                last = entry.sequence
                if (turn := builder.take(entry)) is not None:
                    turns.append(turn)
                    totals = totals.with_turn(turn)
        if (turn := builder.end()) is not None:
            turns.append(turn)
            totals = totals.with_turn(turn)
        return SessionOutline(self.summary, totals, tuple(turns), self._full_from(turns), last)

    async def turns(self, outline: SessionOutline) -> AsyncIterator[TurnTimeline]:
        """The turns that are shown in full, in their order."""
        first = next((turn for turn in outline.turns if turn.number >= outline.full_from), None)
        if first is None:
            return
        builder = TimelineBuilder(turns=first.number - 1)
        async with aclosing(self._entries(first.first_sequence - 1, outline.last_sequence)) as entries:
            async for entry in entries:
                if (turn := builder.take(entry)) is not None:
                    yield turn
        if (turn := builder.end()) is not None:
            yield turn

    def _full_from(self, turns: deque[TurnTimeline]) -> int:
        """The number of the first turn that there is room for; the last turn is shown in any case."""
        room, first = self.page_weight, turns[-1].number if turns else 1
        for turn in list(reversed(turns))[:TURNS_IN_FULL]:
            room -= turn.weight
            if room < 0:
                break
            first = turn.number
        return first

    async def _entries(self, after: int, last: int | None) -> AsyncGenerator[LogEntry]:
        while page := await self.store.read(self.summary.id, after, ENTRIES_AT_ONCE):
            for entry in page:
                if last is not None and entry.sequence > last:
                    return
                yield entry
            after = page[-1].sequence
