"""Two logs side by side: without what differs at each run, and the words of the model alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby, zip_longest
from typing import TypeAlias

import attrs
from attrs import frozen

from punie.domain.session.events import TextDelta, ThoughtDelta, ToolCallAnnounced
from punie.domain.session.log import LoggedEvent, PromptAccepted

IDS = ("turn_id", "call_id", "message_id", "compaction_id")
TIMES = ("elapsed_s", "first_s")

Encode: TypeAlias = Callable[[LoggedEvent], tuple[str, str]]
"""Gives the kind of an event and its JSON, as logs have it."""


def canonical(events: Iterable[LoggedEvent], encode: Encode) -> list[str]:
    """A line for each event, equal for equal runs.

    Left out is the time of each entry; `TIMES` are 0, and `IDS` are numbered in the order in which they appear. The
    pieces of a message are one entry, however many the log has: their number depends on when it was written.
    """
    numbers: dict[str, str] = {"": ""}
    return [" ".join(encode(_without_chance(event, numbers))) for event in _whole_messages(events)]


def _whole_messages(events: Iterable[LoggedEvent]) -> Iterator[LoggedEvent]:
    for _, alike in groupby(events, _message_of):
        first, *more = alike
        if isinstance(first, (TextDelta, ThoughtDelta)):
            pieces = (piece.text for piece in more if isinstance(piece, (TextDelta, ThoughtDelta)))
            yield attrs.evolve(first, text="".join((first.text, *pieces)))
        else:
            yield from (first, *more)


def _message_of(event: LoggedEvent) -> object:
    """Equal for the pieces of one message."""
    return (type(event), event.message_id) if isinstance(event, (TextDelta, ThoughtDelta)) else id(event)


def _without_chance(event: LoggedEvent, numbers: dict[str, str]) -> LoggedEvent:
    changes: dict[str, object] = {}
    for name in attrs.fields_dict(type(event)):
        value: object = getattr(event, name)
        if name in IDS and isinstance(value, str):
            changes[name] = numbers.setdefault(value, f"{name} {len(numbers)}")
        elif name in TIMES and value is not None:
            changes[name] = 0.0
    return attrs.evolve(event, **changes) if changes else event


@frozen
class Words:
    """The words of the model in one place, in a recorded session and in a replay; the place is behind `call` calls."""

    turn: int
    call: int
    recorded: str
    replayed: str

    @property
    def same(self) -> bool:
        """Whether the texts are equal."""
        return self.recorded == self.replayed


def compared_words(
    recorded: Sequence[LoggedEvent], replayed: Sequence[LoggedEvent], until: tuple[int, int]
) -> list[Words]:
    """The model's words in all places up to that one, without its thoughts."""
    old, new = dict(_said(recorded)), dict(_said(replayed))
    places = sorted(place for place in old.keys() | new.keys() if place <= until)
    return [Words(*place, old.get(place, ""), new.get(place, "")) for place in places]


def _said(events: Iterable[LoggedEvent]) -> Iterator[tuple[tuple[int, int], str]]:
    turn = call = 0
    said: list[str] = []
    for event in (*events, None):
        if isinstance(event, TextDelta):
            said.append(event.text)
        elif event is None or isinstance(event, PromptAccepted | ToolCallAnnounced):
            if said:
                yield (turn, call), "".join(said)
            said = []
            if isinstance(event, PromptAccepted):
                turn, call = turn + 1, 0
            elif event is not None:
                call += not event.inner


def first_difference(recorded: Sequence[str], replayed: Sequence[str]) -> int | None:
    """The place, from 1, of the first line that differs; None where all are equal."""
    pairs = enumerate(zip_longest(recorded, replayed), start=1)
    return next((place for place, (old, new) in pairs if old != new), None)
