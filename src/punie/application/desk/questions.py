"""The open questions of a session: identical questions are put once, and their number is bounded."""

from __future__ import annotations

import anyio
from attrs import define, field

from punie.domain.permission.flow import Dismissed, PermissionOutcome, PermissionQuestion
from punie.ports.permission import PermissionBroker

SHOWN_LIMIT = 8
"""Different questions that are shown at once; further ones wait."""

WAITING_LIMIT = 64
"""Calls that may wait for an answer; one more is refused unasked."""


@define(eq=False)
class _Put:
    """A question that was put; `outcome` stays None where the asking call was stopped before there was an answer."""

    settled: anyio.Event = field(factory=anyio.Event)
    outcome: PermissionOutcome | None = None


@define
class OpenQuestions:
    """Puts questions to the broker; lives as long as the session.

    One answer settles every call that waits for the same question at that moment. An equal call that comes later is
    asked about again.
    """

    broker: PermissionBroker
    _put: dict[str, _Put] = field(factory=dict[str, _Put], init=False)
    _waiting: int = field(default=0, init=False)
    _places: anyio.Semaphore = field(factory=lambda: anyio.Semaphore(SHOWN_LIMIT), init=False)

    async def ask(self, key: str, question: PermissionQuestion) -> PermissionOutcome:
        """The answer to the question; questions with equal keys count as the same question."""
        if self._waiting >= WAITING_LIMIT:
            return Dismissed(f"{WAITING_LIMIT} calls wait for an answer already; wait for those before you ask more")
        self._waiting += 1
        try:
            outcome: PermissionOutcome | None = None
            while outcome is None:
                known = self._put.get(key)
                if known is None:
                    return await self._ask_now(key, question)
                await known.settled.wait()
                outcome = known.outcome
            return outcome
        finally:
            self._waiting -= 1

    async def _ask_now(self, key: str, question: PermissionQuestion) -> PermissionOutcome:
        put = self._put[key] = _Put()
        try:
            async with self._places:
                put.outcome = await self.broker.ask(question)
                return put.outcome
        finally:
            del self._put[key]
            put.settled.set()
