"""The outcome of a replay beside its record, for a person and for programs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from hashlib import sha256
from itertools import groupby, zip_longest

from attrs import asdict, evolve, fields_dict, frozen

from punie.adapters.storage.sessions.event_codec import encoded
from punie.application.replay.door import Divergence
from punie.application.replay.recording import Recording
from punie.application.replay.run import Replayed
from punie.domain.session.events import RequestBegun, TextDelta, ThoughtDelta, ToolCallAnnounced
from punie.domain.session.log import LoggedEvent, PromptAccepted
from punie.domain.values.display import counted, display_safe, one_line
from punie.domain.values.json_value import JsonValue, camel, thaw
from punie.mechanics.line_diff import hunks

LINES, LINE_CHARS = 60, 200
"""The part of a difference that a person is shown; `--json` has all of it."""

NAMES = 12

IDS = ("turn_id", "call_id", "message_id", "compaction_id")
TIMES = ("elapsed_s", "first_s")


def canonical(events: Iterable[LoggedEvent]) -> list[str]:
    """A line for each event, equal for equal runs.

    Left out is the time of each entry; `TIMES` are 0, and `IDS` are numbered in the order in which they appear. The
    pieces of a message are one entry, however many the log has: their number depends on when it was written.
    """
    numbers: dict[str, str] = {"": ""}
    return [" ".join(encoded(_without_chance(event, numbers))) for event in _whole_messages(events)]


def _whole_messages(events: Iterable[LoggedEvent]) -> Iterator[LoggedEvent]:
    for _, alike in groupby(events, _message_of):
        first, *more = alike
        if isinstance(first, (TextDelta, ThoughtDelta)):
            pieces = (piece.text for piece in more if isinstance(piece, (TextDelta, ThoughtDelta)))
            yield evolve(first, text="".join((first.text, *pieces)))
        else:
            yield from (first, *more)


def _message_of(event: LoggedEvent) -> object:
    """Equal for the pieces of one message."""
    return (type(event), event.message_id) if isinstance(event, (TextDelta, ThoughtDelta)) else id(event)


def _without_chance(event: LoggedEvent, numbers: dict[str, str]) -> LoggedEvent:
    changes: dict[str, object] = {}
    for name in fields_dict(type(event)):
        value: object = getattr(event, name)
        if name in IDS and isinstance(value, str):
            changes[name] = numbers.setdefault(value, f"{name} {len(numbers)}")
        elif name in TIMES and value is not None:
            changes[name] = 0.0
    return evolve(event, **changes) if changes else event


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


@frozen
class Asked:
    """The model that was asked, by which engine, and its tools; those in `unknown` are known by their names alone."""

    model: str
    engine: str
    tools: int
    unknown: tuple[str, ...]


@frozen(slots=False)
class Report:
    """A replay beside its record. `asked` is None where the log was told again without a model."""

    recording: Recording
    done: Replayed
    asked: Asked | None = None

    @cached_property
    def logs(self) -> tuple[list[str], list[str]]:
        """The recorded log and the replay's, without ids and times."""
        return canonical(self.recording.events), canonical(self.done.events)

    @cached_property
    def entry(self) -> int | None:
        """The first entry that differs between the logs."""
        return first_difference(*self.logs)

    @cached_property
    def words(self) -> list[Words]:
        """The words of the model, place by place."""
        return compared_words(self.recording.events, self.done.events, self.done.until)

    @property
    def same(self) -> bool:
        """Whether the replay went the same way: without a model the whole log, else each call and each turn's end."""
        return self.entry is None if self.asked is None else not self.done.divergences

    def fields(self) -> dict[str, object]:
        """The report for programs."""
        done, (recorded, replayed) = self.done, self.logs
        first = done.divergences[0] if done.divergences else None
        usage = done.usage
        other = next((words for words in self.words if not words.same), None)
        return {
            "sessionId": self.recording.session_id,
            "model": None if self.asked is None else self.asked.model,
            "engine": None if self.asked is None else self.asked.engine,
            "same": self.same,
            "whole": done.whole,
            "turns": done.turns,
            "recordedTurns": len(self.recording.turns),
            "calls": done.calls,
            "recordedCalls": len(self.recording.calls),
            "divergence": None if first is None else _fields(first),
            "divergences": len(done.divergences),
            "words": {
                "places": len(self.words),
                "differ": sum(not words.same for words in self.words),
                "first": None if other is None else camel(asdict(other)),
            },
            "log": {"equal": self.entry is None, "entry": self.entry, "sha256": _digest(replayed)},
            "recordedLog": {"entries": len(recorded), "sha256": _digest(recorded)},
            "unknownTools": [] if self.asked is None else list(self.asked.unknown),
            "sentOtherwise": self.sent_otherwise,
            "requests": usage.requests,
            "inputTokens": usage.input_tokens,
            "outputTokens": usage.output_tokens,
            "cachedTokens": usage.cached_read_tokens,
            "costUsd": usage.cost_usd,
            "sparedS": round(done.spared_s, 3),
        }

    def text(self) -> str:
        """The report for a person."""
        return "".join(f"{line}\n" for line in self._lines())

    def _lines(self) -> Iterator[str]:
        done, turns, calls = self.done, len(self.recording.turns), len(self.recording.calls)
        yield f"{one_line(self.recording.session_id)}: {counted(turns, 'turn')}, {counted(calls, 'call')}"
        if self.asked is not None:
            yield from self._about(self.asked)
        answered = counted(done.calls, "call")
        yield f"Nothing was run: the log answered {answered}, which took {done.spared_s:.1f} s when recorded."
        yield ""
        if done.divergences:
            yield from _told(done.divergences[0])
            more = len(done.divergences) - 1
            what = (
                "The replay went on"
                if done.whole
                else f"It ended in turn {done.turns}: the log does not say what follows"
            )
            behind = f"; {counted(more, 'more difference')} came behind it" if more else ""
            yield f"{what}{behind}."
        elif self.asked is not None:
            yield "The replay went the same way: every call, and the end of every turn."
        if self.asked is not None:
            yield from self._about_words()
        yield from self._about_log()

    def _about(self, asked: Asked) -> Iterator[str]:
        yield f"asked: {one_line(asked.model, LINE_CHARS)} (engine {one_line(asked.engine, LINE_CHARS)})"
        unknown = f"; only the names are known of {_listed(asked.unknown)}" if asked.unknown else ""
        yield f"tools: {asked.tools}, by the log's names and today's definitions{unknown}"
        if self.sent_otherwise:
            yield f"sent otherwise than recorded: {_listed(self.sent_otherwise)}"

    def _about_words(self) -> Iterator[str]:
        differ = [words for words in self.words if not words.same]
        if not differ:
            yield f"The model's words are the same in {counted(len(self.words), 'place')}."
            return
        first = differ[0]
        yield f"The model's words differ in {len(differ)} of {len(self.words)} places, which counts as no divergence."
        yield f"The first is in turn {first.turn}, behind {counted(first.call, 'call')}:"
        yield from _difference(first.recorded, first.replayed)

    def _about_log(self) -> Iterator[str]:
        recorded, replayed = self.logs
        if self.entry is None:
            yield f"The log is the same, byte by byte but for ids and times: sha256 {_digest(replayed)}"
        elif self.asked is None:
            yield f"The log is another one from entry {self.entry} of {len(recorded)} on:"
            yield from _difference(_line(recorded, self.entry), _line(replayed, self.entry))

    @cached_property
    def sent_otherwise(self) -> list[str] | None:
        """The parts of the first request that differ from the record; None where the logs do not both have them."""
        old, new = (_begun(events) for events in (self.recording.events, self.done.events))
        if old is None or new is None:
            return None
        were, are = dict(old.tools), dict(new.tools)
        names = [name for name in dict.fromkeys((*were, *are)) if were.get(name) != are.get(name)]
        return [*(["the instructions"] if old.instructions != new.instructions else []), *names]


def _begun(events: Sequence[LoggedEvent]) -> RequestBegun | None:
    return next((event for event in events if isinstance(event, RequestBegun)), None)


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - NAMES} more" if len(names) > NAMES else ""
    return one_line(", ".join(names[:NAMES]), 1_000) + more


def _line(lines: Sequence[str], number: int) -> str:
    return lines[number - 1] if number <= len(lines) else ""


def _digest(lines: Sequence[str]) -> str:
    return sha256("\n".join(lines).encode()).hexdigest()


def _fields(divergence: Divergence) -> dict[str, object]:
    return {
        "what": divergence.way.value,
        "turn": divergence.turn,
        "call": divergence.call,
        "expected": thaw(divergence.expected),
        "got": thaw(divergence.got),
    }


def _told(divergence: Divergence) -> Iterator[str]:
    where = f"turn {divergence.turn}" + ("" if divergence.call is None else f", call {divergence.call}")
    yield f"The replay went another way in {where}: {divergence.way.value}."
    yield from _difference(_spread(divergence.expected), _spread(divergence.got))


def _spread(value: JsonValue) -> str:
    """A value on several lines, with the lines of its texts as lines of their own."""
    if value is None:
        return ""
    return json.dumps(thaw(value), indent=2, sort_keys=True, ensure_ascii=False).replace("\\n", "\n    ")


def _difference(old: str, new: str) -> Iterator[str]:
    """The hunks of a difference, bounded and safe for a terminal: `-` is the record, `+` the replay."""
    lines = hunks(f"{old}\n" if old else "", f"{new}\n" if new else "").splitlines()
    for line in lines[:LINES]:
        yield f"  {display_safe(line[:LINE_CHARS])}"
    if len(lines) > LINES:
        yield f"  ... {len(lines) - LINES} more lines, which --json has"
