"""How far a call is, as its server tells: bounded in time, in number and in length."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import anyio

from punie.adapters.mcp.attempt import CallWatch
from punie.ports.tools import CallProgress

PATIENCE: Final = 10
"""A call that goes on telling of its progress may take this many times the server's `call_s`."""

_CHARS: Final = 300


class ProgressSteps(CallWatch):
    """Hands steps on and gives the call more time for each; lives as long as the call, whose `scope` it bounds.

    While a person is asked something for the call, its time stands still.

    One step is on its way at a time. What comes meanwhile replaces what waits: a server that tells faster than
    anybody listens fills no memory, and the last word is not lost.
    """

    def __init__(self, shown: CallProgress, scope: anyio.CancelScope, call_s: float) -> None:
        self.call_id = shown.call_id
        self._shown = shown
        self._scope = scope
        self._call_s = call_s
        self._latest_end = anyio.current_time() + PATIENCE * call_s
        self._waiting: tuple[str, float | None] | None = None
        self._busy = False
        self._closed = False
        self._paused = 0
        scope.deadline = anyio.current_time() + call_s

    async def __call__(self, progress: float, total: float | None, message: str | None) -> None:
        """Take one step; steps after the call's end are dropped."""
        if self._closed:
            return
        self._give_time()
        self._waiting = _in_words(progress, total, message)
        if self._busy:
            return
        self._busy = True
        try:
            while self._waiting is not None and not self._closed:
                step, self._waiting = self._waiting, None
                await self._shown.report(*step)
        finally:
            self._busy = False

    @contextmanager
    def pause(self) -> Iterator[None]:
        began = anyio.current_time()
        self._paused += 1
        self._scope.deadline = math.inf
        try:
            yield
        finally:
            self._paused -= 1
            if not self._paused:
                self._latest_end += anyio.current_time() - began
                self._give_time()

    def _give_time(self) -> None:
        if not self._paused and not self._closed:
            self._scope.deadline = min(anyio.current_time() + self._call_s, self._latest_end)

    def close(self) -> None:
        """The call has its result."""
        self._closed = True


def _in_words(done: float, total: float | None, message: str | None) -> tuple[str, float | None]:
    known = total is not None and math.isfinite(total) and total > 0 and math.isfinite(done)
    said = (message or "").strip()[:_CHARS]
    if not said:
        said = f"{done:g} of {total:g}" if known else f"{done:g}"
    return said, min(max(done / total, 0.0), 1.0) if known and total else None
