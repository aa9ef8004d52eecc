"""One session of the reference IDE with an agent: its prompts, files and terminals, and the record of its events."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import anyio
from attrs import define, field, frozen
from msgspec import Raw

from punie.api import EMPTY_OBJECT, JsonObject, freeze_object
from punie_ide.events import (
    CallAnnounced,
    IdeEvent,
    PermissionAnswered,
    PermissionAsked,
    PromptSent,
    TextSaid,
    ToolUsed,
    TurnFinished,
)
from punie_ide.observed import ObservedTerminals, ObservedWorkspace
from punie_ide.permission import Decide, Question
from punie_ide.wire import PromptResult, decode

E = TypeVar("E")
Observe = Callable[[IdeEvent], None]
Ask = Callable[[str, object], Awaitable[Raw]]
"""Sends a request to the agent; raises `AgentGone` or `RpcError`."""
Tell = Callable[[str, object], Awaitable[None]]


@frozen
class Turn:
    """One prompt with its stop reason and events."""

    stop_reason: str
    events: tuple[IdeEvent, ...]

    @property
    def text(self) -> str:
        """The text of the answer."""
        return "".join(event.text for event in self.of(TextSaid))

    @property
    def calls(self) -> tuple[CallAnnounced, ...]:
        """The tool calls as they were announced."""
        return self.of(CallAnnounced)

    @property
    def tools_used(self) -> tuple[str, ...]:
        """The IDE's own tools that were called, in the order they answered."""
        return tuple(event.name for event in self.of(ToolUsed))

    @property
    def questions(self) -> tuple[Question, ...]:
        """The questions to the person."""
        return tuple(event.question for event in self.of(PermissionAsked))

    def of(self, kind: type[E]) -> tuple[E, ...]:
        """The events of one kind, in order."""
        return tuple(event for event in self.events if isinstance(event, kind))


@define(eq=False)
class IdeSession:
    """One session, from `session/new` to `close` or the end of the IDE; `events` are all of its events in order.

    `terminals` are those of the agent, `tools_terminals` those of the IDE's tools; neither knows the other's.
    """

    id: str
    cwd: str
    ask_agent: Ask
    tell_agent: Tell
    decide: Decide
    observe: Observe | None = None
    workspace: ObservedWorkspace | None = None
    terminals: ObservedTerminals | None = None
    tools_terminals: ObservedTerminals | None = None
    events: list[IdeEvent] = field(factory=list, init=False)
    _discovery: JsonObject = field(default=EMPTY_OBJECT, init=False)
    _open_questions: set[anyio.CancelScope] = field(factory=set, init=False)
    _cancelling: bool = field(default=False, init=False)

    @property
    def discovery(self) -> JsonObject:
        """The agent's report on discovery (`tier`, `tools`, `dropped`, `elapsedMs`); empty without one."""
        return self._discovery

    def opened(self, cwd: str, discovery: dict[str, Any]) -> None:
        """Take the answer to `session/new`."""
        self.cwd = cwd
        self._discovery = freeze_object(discovery)

    def record(self, event: IdeEvent) -> None:
        """Add an event and pass it to `observe`."""
        self.events.append(event)
        if self.observe is not None:
            self.observe(event)

    async def prompt(self, *blocks: str | dict[str, Any]) -> Turn:
        """Send a prompt of texts and content blocks and wait for the end of the turn; the caller sets any deadline.

        Raises `RpcError` where the agent refuses, `AgentGone` where it ends.
        """
        start = len(self.events)
        self._cancelling = False
        content = [{"type": "text", "text": block} if isinstance(block, str) else block for block in blocks]
        self.record(PromptSent("\n".join(block for block in blocks if isinstance(block, str))))
        result = await self.ask_agent("session/prompt", {"sessionId": self.id, "prompt": content})
        stop_reason = decode(result, PromptResult).stop_reason
        self.record(TurnFinished(stop_reason))
        return Turn(stop_reason, tuple(self.events[start:]))

    async def cancel(self) -> None:
        """Stop the running turn; open questions are answered `cancelled` (ACP: cancellation)."""
        self._cancelling = True
        await self.tell_agent("session/cancel", {"sessionId": self.id})
        for scope in tuple(self._open_questions):
            scope.cancel()

    async def close(self) -> None:
        """End the session at the agent and the programs that it left running."""
        try:
            await self.ask_agent("session/close", {"sessionId": self.id})
        finally:
            await self.release()

    async def release(self) -> None:
        """End every program that the session left running."""
        for terminals in (self.terminals, self.tools_terminals):
            if terminals is not None:
                await terminals.release_all()

    async def answer(self, question: Question) -> dict[str, Any]:
        """Put a question to the person; returns the result of `session/request_permission`."""
        self.record(PermissionAsked(question))
        option_id: str | None = None
        if not self._cancelling:
            with anyio.CancelScope() as scope:
                self._open_questions.add(scope)
                try:
                    option_id = await self._decide(question)
                finally:
                    self._open_questions.discard(scope)
        self.record(PermissionAnswered(question.call_id, option_id))
        if option_id is None:
            return {"outcome": {"outcome": "cancelled"}}
        return {"outcome": {"outcome": "selected", "optionId": option_id}}

    async def _decide(self, question: Question) -> str | None:
        decided = self.decide(question)
        return await decided if inspect.isawaitable(decided) else decided
