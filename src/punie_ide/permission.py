"""The person at the reference IDE: what they are asked, and how they may be made to answer."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeAlias

from attrs import field, frozen

from punie.api import Diff, JsonValue, PermissionOption, ResultContent, Text, freeze


@frozen
class Question:
    """One `session/request_permission` as a person sees it (ACP: tool calls, requesting permission).

    `options` are those whose kind this IDE knows, in the agent's order. `reason` is Punie's own addition: why it asks.
    """

    session_id: str
    call_id: str
    title: str
    kind: str
    options: tuple[PermissionOption, ...]
    locations: tuple[str, ...] = ()
    content: tuple[ResultContent, ...] = ()
    raw_input: JsonValue = field(default=None, converter=freeze)
    reason: str = ""

    @property
    def diffs(self) -> tuple[Diff, ...]:
        """The changes that the call would make."""
        return tuple(part for part in self.content if isinstance(part, Diff))

    @property
    def text(self) -> str:
        """What the agent shows of the call in words."""
        return "\n".join(part.text for part in self.content if isinstance(part, Text))


Decide: TypeAlias = Callable[[Question], "str | Awaitable[str | None] | None"]
"""Answers a question with the id of an option, or None to dismiss it; a coroutine function may take its time."""


def allow_once(question: Question) -> str | None:
    """Say yes to this one call, where that is offered."""
    return _first(question, "allow_once")


def reject(question: Question) -> str | None:
    """Say no, where that is offered; else close the question."""
    return _first(question, "reject_once")


def _first(question: Question, kind: str) -> str | None:
    return next((option.id for option in question.options if option.kind.value == kind), None)
