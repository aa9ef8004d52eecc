"""A turn that the log is still in: its steps as far as there is room for them, and the time that each kind took."""

from __future__ import annotations

from collections import Counter, deque
from typing import TypeAlias

from attrs import define, evolve, field, frozen

from punie.domain.session.timeline import Excerpt, Interval, Speech, Step, TurnTimeline, shares_of
from punie.domain.tools.tool import ToolOutcome

SHORT_CHARS = 200
"""What is left of a text where the turn has no room for more."""

INTERVALS = 20_000
"""Intervals of each kind that are counted as they are; beyond them the time is counted as one."""


TEXT_CHARS = 12_000


@frozen
class Room:
    """How much of a turn is told: the characters of one text, of all of them, and the first and last steps."""

    text_chars: int = TEXT_CHARS
    turn_chars: int = 2_000_000
    first_steps: int = 1_000
    last_steps: int = 500


STEP_WEIGHT = 1_000

HEAVIEST = 4_000_000
"""More than this no turn takes on a page, whatever its texts would."""

OUTLINE = Room(text_chars=SHORT_CHARS, turn_chars=0, first_steps=0, last_steps=0)
"""Room for what a turn came to, and for none of its steps."""

_Steps: TypeAlias = "deque[Held]"


@define(eq=False)
class Held:
    """A step that may still change; one that was let go of is shown no more."""

    step: Step
    gone: bool = False


@define(eq=False)
class OpenTurn:
    """The turn that the log is in."""

    seen: TurnTimeline
    room: Room
    ended: float
    first: list[Held] = field(factory=list[Held])
    last: _Steps = field(factory=deque[Held])
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
        self.weigh(min(len(text), TEXT_CHARS))
        return Excerpt.of(text, limit)

    def weigh(self, chars: int) -> None:
        """So much of the room is taken."""
        self.chars += chars

    def add(self, step: Step) -> Held:
        """The next step; of too many the first and the last are kept."""
        held = Held(step)
        self.message = None
        self.weigh(STEP_WEIGHT)
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
        """The next step, which began before what was said last: that is what it brought."""
        self.add(step)
        kept = self.last or self.first
        place = len(kept) - 1
        while place > 0 and isinstance(kept[place - 1].step, Speech):
            kept[place - 1], kept[place] = kept[place], kept[place - 1]
            place -= 1

    def call(self, call_id: str) -> Held | None:
        """The call of that id, unless it is over."""
        return self.calls.get(call_id)

    def timed(self, intervals: list[Interval], start: float, end: float) -> None:
        """Something took from one moment to the other."""
        if len(intervals) >= INTERVALS:  # then it is one long time: seconds do not matter there
            intervals[:] = [(min(start for start, _ in intervals), max(end for _, end in intervals))]
        intervals.append((start, end))

    def timeline(self) -> TurnTimeline:
        """All that is known of it."""
        shares = shares_of((self.seen.began, self.ended), self.tools, self.model, self.waiting)
        steps = tuple(held.step for held in (*self.first, *self.last))
        return evolve(
            self.seen, ended=self.ended, steps=steps, left_out=self.left_out, gap_at=len(self.first), shares=shares,
            calls=dict(self.outcomes), weight=min(self.chars, HEAVIEST),
        )  # fmt: skip
