"""Blocking calls on a daemon thread, for descriptors that no event loop can wait for (pipes on Windows)."""

from __future__ import annotations

import queue
import threading
from typing import TYPE_CHECKING, Generic, TypeVar

import anyio
from anyio import from_thread
from anyio.lowlevel import current_token

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")


class BlockingCall(Generic[T]):
    """One blocking call. The call cannot be interrupted; waiting for it can, any number of times."""

    def __init__(self, work: Callable[[], T]) -> None:
        self._work = work
        self._token = current_token()
        self._done = anyio.Event()
        self._outcome: T | OSError | None = None

    def execute(self) -> None:
        """Run the call in the lane's thread and wake those who wait, unless the event loop has ended."""
        try:
            self._outcome = self._work()
        except OSError as exc:
            self._outcome = exc
        try:
            from_thread.run_sync(self._done.set, token=self._token)
        except (RuntimeError, anyio.RunFinishedError):
            return

    async def result(self) -> T:
        """Wait for the call and return its result. Raises its OSError."""
        await self._done.wait()
        if isinstance(self._outcome, OSError):
            raise self._outcome
        if self._outcome is None:
            raise RuntimeError("the call ended without an outcome")
        return self._outcome


class BlockingLane:
    """A thread that runs calls one after the other; a daemon, since a blocked read must not delay the exit."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._calls: queue.SimpleQueue[BlockingCall[int] | BlockingCall[bytes]] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None

    def start(self, call: BlockingCall[int] | BlockingCall[bytes]) -> None:
        """Queue a call; the thread starts with the first."""
        self._calls.put(call)
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name=self._name, daemon=True)
            self._thread.start()

    def _work(self) -> None:
        while True:
            self._calls.get().execute()
