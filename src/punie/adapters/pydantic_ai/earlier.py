"""The part of a history that a turn leaves alone, kept in the form in which it is sent.

The library looks through all messages many times a request. A turn adds to the history alone, so the agent runs with
the messages of its turn, and the model puts those before it in front of each request.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from operator import is_
from typing import Final, Generic, TypeAlias, TypeVar

from attrs import define
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelRequestPart,
    ModelResponse,
    ModelResponsePart,
    UserPromptPart,
    repair_messages,
)

V = TypeVar("V")

Prepare: TypeAlias = Callable[[list[ModelMessage]], list[ModelMessage]]

_PLAIN: Final = frozenset({"user-prompt", "tool-return", "text", "thinking", "tool-call"})


class History(list[ModelMessage]):
    """A history with what is known of its first messages; lives as long as its session, or until it is replaced."""

    def __init__(self, messages: Sequence[ModelMessage], known: Earlier | None = None) -> None:
        super().__init__(messages)
        self.known = known


@define(eq=False)
class Earlier:
    """Messages of a history, and what is sent of them; lives as long as the history goes on from them."""

    messages: Sequence[ModelMessage] = ()
    sent: Sequence[ModelMessage] = ()

    def going_on(self, history: Sequence[ModelMessage], prepare: Prepare) -> Earlier:
        """The same for a history that goes on from these messages; `prepare` is the library's work on what is sent."""
        added = repair_messages(history[len(self.messages) :])
        sent = _prepared(added, prepare)
        if not self.messages:
            return Earlier(history, sent)
        if not same(added, sent):  # then the library may word what was before otherwise as well
            return Earlier(history, _prepared(repair_messages(history), prepare))
        return Earlier(history, [*self.sent, *sent])


def _prepared(messages: list[ModelMessage], prepare: Prepare) -> list[ModelMessage]:
    prepared = prepare(messages)
    return prepared if prepared is messages else repair_messages(prepared)


def earlier_of(history: Sequence[ModelMessage]) -> Earlier | None:
    """The known part of the history; None where what is sent of it depends on what a turn adds to it.

    One that ends in a whole answer, and has prompts, answers, calls and their results alone, does not depend on that.
    """
    known = (history.known if isinstance(history, History) else None) or Earlier()
    if not begins_with(history, known.messages) or not _is_prompt(history[len(known.messages) :]):
        known = Earlier()
    last = history[-1] if history else None
    if not isinstance(last, ModelResponse) or last.state != "complete":
        return None
    added = history[len(known.messages) :]
    return known if all(_is_plain(part) for message in added for part in message.parts) else None


def _is_plain(part: ModelRequestPart | ModelResponsePart) -> bool:
    """Whether it is one of the usual parts, and none in which the library keeps what it found or loaded."""
    return part.part_kind in _PLAIN and getattr(part, "tool_kind", None) is None


def _is_prompt(messages: Sequence[ModelMessage]) -> bool:
    """Whether they begin with a prompt; also where there are none."""
    first = messages[0] if messages else None
    return first is None or (isinstance(first, ModelRequest) and isinstance(first.parts[0], UserPromptPart))


def begins_with(messages: Sequence[ModelMessage], first: Sequence[ModelMessage]) -> bool:
    """Whether the messages begin with those very ones."""
    return len(first) <= len(messages) and all(map(is_, first, messages))


def same(messages: Sequence[ModelMessage], others: Sequence[ModelMessage]) -> bool:
    """Whether they are the very same messages."""
    return len(messages) == len(others) and all(map(is_, messages, others))


class Memo(Generic[V]):
    """Values made of messages that are not changed any more; each that `lasts` lives as long as its message."""

    def __init__(self, make: Callable[[ModelMessage], V], lasts: Callable[[V], bool] = lambda _: True) -> None:
        self._make = make
        self._lasts = lasts
        self._known: dict[int, tuple[weakref.ref[ModelMessage], V]] = {}

    def __len__(self) -> int:
        return len(self._known)

    def of(self, message: ModelMessage) -> V:
        """The value, made once."""
        number = id(message)
        known = self._known.get(number)
        if known is not None and known[0]() is message:
            return known[1]
        value = self._make(message)
        if not self._lasts(value):
            return value
        self._known[number] = (weakref.ref(message, lambda _: self._known.pop(number, None)), value)
        return value
