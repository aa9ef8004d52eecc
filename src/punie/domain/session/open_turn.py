"""A turn whose end was not read from the log yet: its steps as far as there is room, and the time of each kind."""

from __future__ import annotations

from collections import Counter, deque

from attrs import define, evolve, field, frozen

from punie.domain.session.timeline import Excerpt, Interval, Speech, Step, TurnTimeline, shares_of
from punie.domain.tools.tool import ToolOutcome

SHORT_CHARS = 200
"""The characters kept of a text where the turn has no room for more."""

INTERVALS = 20_000
"""Intervals of each kind that are counted one by one; beyond them the time counts as a single interval."""

TEXT_CHARS = 12_000


@frozen
class Room:
    """The bounds of a turn on a page: the characters of one text, of all texts, and the first and last steps."""

    text_chars: int = TEXT_CHARS
    turn_chars: int = 2_000_000
    first_steps: int = 1_000
    last_steps: int = 500


STEP_WEIGHT = 1_000

HEAVIEST = 4_000_000
"""The most characters that a turn counts for on a page."""

OUTLINE = Room(text_chars=SHORT_CHARS, turn_chars=0, first_steps=0, last_steps=0)
"""Room for the outcome of a turn, and for none of its steps."""


@define(eq=False)
class Held:
    """A step that may still change; a step that is `gone` is not shown."""

    step: Step
    gone: bool = False


@define(eq=False)
class OpenTurn:
    """The turn of the latest log entry; lives until the entry that ends it."""

    seen: TurnTimeline
    room: Room
    ended: float
    first: list[Held] = field(factory=list[Held])
    last: deque[Held] = field(factory=deque[Held])
    left_out: int = 0
    chars: int = 0
    calls: dict[str, Held] = field(factory=dict[str, Held])
    message: tuple[bool, str | None] | None = None
    tools: list[Interval] = field(factory=list[Interval])
    model: list[Interval] = field(factory=list[Interval])
    waiting: list[Interval] = field(factory=list[Interval])
    outcomes: Counter[ToolOutcome] = field(factory=Counter[ToolOutcome])

    def excerpt(self, text: str) -> Excerpt:
        """The text, as far as there is room."""
        limit = self.room.text_chars if self.chars < self.room.turn_chars else min(SHORT_CHARS, self.room.text_chars)
        self.chars += min(len(text), TEXT_CHARS)
        return Excerpt.of(text, limit)

    def add(self, step: Step) -> Held:
        """Add the next step; of too many the first and the last are kept."""
        held = Held(step)
        self.message = None
        self.chars += STEP_WEIGHT
        if len(self.first) < self.room.first_steps:
            self.first.append(held)
            return held
        self.last.append(held)
        if len(self.last) > self.room.last_steps:
            dropped = self.last.popleft()
            dropped.gone = True
            self.left_out += 1
        return held

    def add_before_speech(self, step: Step) -> None:
        """Add a request, which began before the messages that it brought."""
        self.add(step)
        kept = self.last or self.first
        place = len(kept) - 1
        while place > 0 and isinstance(kept[place - 1].step, Speech):
            kept[place - 1], kept[place] = kept[place], kept[place - 1]
            place -= 1

    def timed(self, intervals: list[Interval], start: float, end: float) -> None:
        """Add an interval to one of the three lists."""
        if len(intervals) >= INTERVALS:  # a turn with so many is so long that seconds do not matter
            intervals[:] = [(min(start for start, _ in intervals), max(end for _, end in intervals))]
        intervals.append((start, end))

    def timeline(self) -> TurnTimeline:
        """The turn as far as it is known."""
        shares = shares_of((self.seen.began, self.ended), self.tools, self.model, self.waiting)
        steps = tuple(held.step for held in (*self.first, *self.last))
        return evolve(
            self.seen, ended=self.ended, steps=steps, left_out=self.left_out, gap_at=len(self.first), shares=shares,
            calls=dict(self.outcomes), weight=min(self.chars, HEAVIEST),
        )  # fmt: skip
