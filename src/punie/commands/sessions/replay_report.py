"""The outcome of a replay, for a person and for programs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import cached_property
from hashlib import sha256

from attrs import asdict, frozen

from punie.adapters.storage.sessions.event_codec import encoded
from punie.application.replay.comparing import Words, canonical, compared_words, first_difference
from punie.application.replay.recording import Recording
from punie.application.replay.run import Replayed
from punie.application.replay.shelf import Divergence
from punie.domain.session.events import RequestBegun
from punie.domain.session.log import LoggedEvent
from punie.domain.values.display import display_safe, one_line
from punie.domain.values.json_value import JsonValue, camel, thaw
from punie.mechanics.line_diff import hunks

LINES, LINE_CHARS = 60, 200
"""The part of a difference that a person is shown; `--json` has all of it."""

NAMES = 12


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
        return canonical(self.recording.events, encoded), canonical(self.done.events, encoded)

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
        yield f"{one_line(self.recording.session_id)}: {turns} turns, {calls} calls"
        if self.asked is not None:
            yield from self._about(self.asked)
        yield f"Nothing was run: the log answered {done.calls} calls, which took {done.spared_s:.1f} s when recorded."
        yield ""
        if done.divergences:
            yield from _told(done.divergences[0])
            more = len(done.divergences) - 1
            what = "It went on" if done.whole else f"It ended in turn {done.turns}: the log does not say what follows"
            yield f"{what}{f'; {more} more differences came behind it' if more else ''}."
        elif self.asked is not None:
            yield "It went the same way: every call, and the end of every turn."
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
            yield f"The model's words are the same in all of {len(self.words)} places."
            return
        first = differ[0]
        yield f"The model's words differ in {len(differ)} of {len(self.words)} places, which counts as no divergence."
        yield f"The first is in turn {first.turn}, behind {first.call} calls:"
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
    yield f"It went another way in {where}: {divergence.way.value}."
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
