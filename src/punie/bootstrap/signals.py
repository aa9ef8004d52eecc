"""SIGINT and SIGTERM, and the exit codes that say so (INTERFACES.md section 1)."""

from __future__ import annotations

import signal
import sys
from collections.abc import Awaitable, Callable

import anyio

EXIT_OF_SIGNAL = {signal.SIGINT: 130, signal.SIGTERM: 143}


async def watch_signals(act: Callable[[int], None]) -> None:
    """Hand the exit code of each signal to `act`, until cancelled. On Windows there is nothing to watch this way."""
    if sys.platform == "win32":
        return
    with anyio.open_signal_receiver(*EXIT_OF_SIGNAL) as signals:
        async for number in signals:
            act(EXIT_OF_SIGNAL[number])


async def unless_interrupted(work: Callable[[], Awaitable[int]]) -> int:
    """The exit code of the work; a signal cancels it, and then the code is the signal's."""
    interrupted: int | None = None
    code = 1
    async with anyio.create_task_group() as tasks:

        def stop(exit_code: int) -> None:
            nonlocal interrupted
            interrupted = exit_code
            tasks.cancel_scope.cancel()

        tasks.start_soon(watch_signals, stop)
        code = await work()
        tasks.cancel_scope.cancel()
    return code if interrupted is None else interrupted
