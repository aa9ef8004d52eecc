"""Heavy work that must not lie on the path to the `initialize` answer (DESIGN.md section 7)."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from types import TracebackType

import anyio
from anyio import from_thread
from anyio.lowlevel import EventLoopToken, current_token


class _Job:
    """One piece of work, and who waits for it; a plain class, since this module is on the path to the first answer."""

    def __init__(self, work: Callable[[], object]) -> None:
        self.work = work
        self.result: object = None
        self.error: Exception | None = None
        self.trace: TracebackType | None = None
        self.done = False
        self.waiters: list[tuple[EventLoopToken, anyio.Event]] = []

    def fail(self, error: BaseException) -> None:
        """Keep what went wrong. A library that wants to end the process ends the job, not whoever waits for it."""
        self.error = error if isinstance(error, Exception) else RuntimeError(f"it ended with {error!r}")
        self.trace = error.__traceback__


class WarmUp:
    """Runs named jobs one after the other in one thread; lives as long as the process.

    The thread is a daemon: a job under way never holds up the exit. `start` is idempotent; `result` starts the thread
    where nobody did, and waits for its own job alone.
    """

    def __init__(self, jobs: Mapping[str, Callable[[], object]]) -> None:
        self._jobs = {name: _Job(work) for name, work in jobs.items()}
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin, in the order of the jobs."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="punie-warm-up", daemon=True)
            self._thread.start()

    async def result(self, name: str) -> object:
        """What the job returned, once it is done; raises what it raised."""
        self.start()
        job = self._jobs[name]
        ready = anyio.Event()
        with self._lock:
            if not job.done:
                job.waiters.append((current_token(), ready))
        if not job.done:
            await ready.wait()
        if job.error is not None:
            # Each raising starts from the same trace: it would grow by every session that asks, and keep them alive.
            raise job.error.with_traceback(job.trace)
        return job.result

    def _work(self) -> None:
        for job in self._jobs.values():
            try:
                job.result = job.work()
            except BaseException as error:  # noqa: BLE001 - handed to whoever waits, at the turn or at the wire
                job.fail(error)
            with self._lock:
                job.done = True
                waiters, job.waiters = job.waiters, []
            for token, ready in waiters:
                _wake(token, ready)


def _wake(token: EventLoopToken, ready: anyio.Event) -> None:
    try:
        from_thread.run_sync(ready.set, token=token)
    except RuntimeError:
        # The event loop has ended meanwhile: nobody waits any more.
        return
