"""The recorded calls of a session, from which the calls of a replay are answered."""

from __future__ import annotations

from enum import StrEnum

from attrs import define, field, frozen

from punie.application.replay.recording import RecordedCall, RecordedTurn, Recording, call_key
from punie.application.tools.session.call_tool import CallTool
from punie.domain.tools.disclosure import CALL_TOOL
from punie.domain.tools.tool import ToolCall
from punie.domain.values.json_value import JsonValue


class Way(StrEnum):
    """The way in which a replay goes another way than its record."""

    TOOL = "another tool"
    ARGUMENTS = "other arguments"
    ORDER = "another order"
    AGAIN = "a call made again"
    MORE = "a call more"
    LESS = "a call less"
    ENDING = "another end of the turn"


@frozen
class Divergence:
    """A place where the replay differs: in that turn, at that call of it, or at the turn's end where `call` is None."""

    way: Way
    turn: int
    call: int | None
    expected: JsonValue
    got: JsonValue


def shown_call(tool: str, arguments: JsonValue) -> JsonValue:
    """A call as a divergence shows it."""
    return {"tool": tool, "arguments": arguments}


@define
class CallShelf:
    """Answers each call from the record; lives as long as one replay.

    The recorded call in the same place answers, if it is the same one: the same tool with equal arguments. Another
    recorded call that is the same answers only where as many calls before it may have changed something as in the
    record, so that no answer is from before or after a change that the replay has not made, or made already. A call
    that may have changed something answers once.
    """

    recording: Recording
    _by_key: dict[str, list[RecordedCall]] = field(factory=dict[str, list[RecordedCall]], init=False)
    _used: set[int] = field(factory=set[int], init=False)
    _state: int = field(default=0, init=False)
    _turn: RecordedTurn = field(init=False)
    _next: int = field(default=0, init=False)
    made: int = field(default=0, init=False)
    """The calls of this turn that were answered."""

    spared_s: float = field(default=0.0, init=False)
    """The time that they took when they were recorded."""

    def __attrs_post_init__(self) -> None:
        for call in self.recording.calls:
            self._by_key.setdefault(call.key, []).append(call)

    def begin(self, turn: RecordedTurn) -> None:
        """The calls from here on are made in that turn."""
        self._turn, self._next, self.made, self.spared_s = turn, 0, 0, 0.0

    @property
    def expected(self) -> RecordedCall | None:
        """The recorded call in the place of the next one; None where the turn has no further."""
        calls = self._turn.calls
        while self._next < len(calls) and id(calls[self._next]) in self._used:
            self._next += 1
        return calls[self._next] if self._next < len(calls) else None

    def take(self, call: ToolCall) -> tuple[RecordedCall | None, Divergence | None]:
        """The recorded call that answers this one, and the difference, if there is one."""
        if call.name == CALL_TOOL:
            call = CallTool.meant(call)
        expected, key = self.expected, call_key(call.name, call.arguments)
        if expected is not None and expected.key == key:
            return self._answered(expected), None
        found, way = self._elsewhere(key), Way.MORE
        if found is not None:
            way = Way.AGAIN if id(found) in self._used else Way.ORDER
        elif expected is not None:
            way = Way.ARGUMENTS if expected.announced.tool == call.name else Way.TOOL
        wanted = None if expected is None else shown_call(expected.announced.tool, expected.announced.raw_input)
        place = self.made + 1 if expected is None else expected.number
        got = shown_call(call.name, call.arguments)
        return self._answered(found), Divergence(way, self._turn.number, place, wanted, got)

    def left(self) -> RecordedCall | None:
        """The first recorded call of the turn that was not made, one that may have changed something before others."""
        calls = [call for call in self._turn.calls if id(call) not in self._used]
        return next((call for call in calls if call.changes), calls[0] if calls else None)

    def _elsewhere(self, key: str) -> RecordedCall | None:
        """The same call in another place; one that was not made yet before one that was."""
        alike = [call for call in self._by_key.get(key, ()) if call.state == self._state]
        fresh = (call for call in alike if id(call) not in self._used)
        return next(fresh, next((call for call in alike if not call.changes), None))

    def _answered(self, call: RecordedCall | None) -> RecordedCall | None:
        if call is None:
            return None
        if id(call) not in self._used:
            self._used.add(id(call))
            self._state += call.changes
            if call.turn == self._turn.number:
                self._next = max(self._next, call.number)
        self.made += 1
        self.spared_s += call.elapsed_s
        return call
