"""How `punie serve` ends (docs/serve.md)."""

from __future__ import annotations

import logging
import signal
import threading
from contextlib import ExitStack

import anyio
from anyio.abc import TaskGroup
from attrs import define

from punie.adapters.websocket.server import WebSocketServer
from punie.commands.running import EXIT_OF_SIGNAL, Exit, exit_at_once
from punie.commands.serve.clients import ServedClients

END_LIMIT_S = 8.0
"""How long connections and sessions may take to close, once turns were told to end."""

FORCE_S = 15.0
FORCE_AGAIN_S = 3.0
"""When the process ends though something hangs, such as a database: after the drain, and after a second signal."""


@define
class Ending:
    """How the server ends: in order at the first signal, and at once at the next. Lives as long as the server.

    `drain_s` is how long running turns have after SIGTERM; with SIGINT, from a person at a terminal, they have none.
    `everything` is what a second signal cancels, `files` are closed last.
    """

    server: WebSocketServer
    clients: ServedClients
    everything: TaskGroup
    files: ExitStack
    drain_s: float
    log: logging.Logger
    exit_code: int = Exit.DONE

    def signalled(self, exit_code: int) -> None:
        """Begin to end, or end at once; `exit_code` is that of the signal."""
        again, self.exit_code = self.exit_code != Exit.DONE, exit_code
        if again:
            self.clients.stop()  # turns that survive are left to another server all the same
            self.everything.cancel_scope.cancel()
            self._force(FORCE_AGAIN_S)
            return
        self.server.refuse()
        drain_s = self.drain_s if exit_code == EXIT_OF_SIGNAL[signal.SIGTERM] else 0.0
        self.everything.start_soon(self._end, drain_s)
        self._force(drain_s + FORCE_S)

    def _force(self, within_s: float) -> None:
        force = threading.Timer(min(within_s, threading.TIMEOUT_MAX), exit_at_once, (self.exit_code,))
        force.daemon = True
        force.start()
        self.files.callback(force.cancel)

    async def _end(self, drain_s: float) -> None:
        with anyio.move_on_after(drain_s):
            await self.clients.drain()
        self.server.stop()
        self.clients.stop()
        await anyio.sleep(END_LIMIT_S)
        self.log.warning("the server did not end in order within %g s: it ends now", END_LIMIT_S)
        self.everything.cancel_scope.cancel()
