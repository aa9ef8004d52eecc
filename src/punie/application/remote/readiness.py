"""Whether a server can take clients, as its probes are told."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from enum import StrEnum

import anyio
from anyio.abc import TaskGroup
from attrs import define, field

from punie.application.remote.reception import Reception
from punie.domain.errors import PunieError

LOOK_LIMIT_S = 2.0
"""How long a probe waits for the database; one that takes longer is not ready."""

FRESH_S = 1.0
"""How long one look at the database answers further probes."""


class Readiness(StrEnum):
    """The answers to the question whether clients should be sent to a server."""

    READY = "ready"
    DRAINING = "draining"
    DATABASE = "database"


@define
class _Look:
    """One look at the database; `works` counts once `over` is set."""

    began_s: float
    over: anyio.Event = field(factory=anyio.Event)
    works: bool = False


@define(eq=False)
class ReadinessWatch:
    """Looks at the database for probes; lives as long as the server, whose `tasks` do the looking.

    `use` uses the database once, and raises a `PunieError` where that fails. Probes share one look, which is not begun
    again while it hangs, so that many probes cost as little as one.
    """

    reception: Reception
    use: Callable[[], Awaitable[object]]
    tasks: TaskGroup
    log: logging.Logger
    _latest: _Look | None = field(default=None, init=False)
    _trouble: str = field(default="", init=False)

    async def now(self) -> Readiness:
        """The state of the server, after `LOOK_LIMIT_S` at most."""
        if self.reception.draining:
            return Readiness.DRAINING
        now = anyio.current_time()
        look = self._latest
        if look is None or (look.over.is_set() and now - look.began_s >= FRESH_S):
            look = self._latest = _Look(now)
            self.tasks.start_soon(self._look, look)
        with anyio.CancelScope(deadline=look.began_s + LOOK_LIMIT_S):
            await look.over.wait()
        return Readiness.READY if look.over.is_set() and look.works else Readiness.DATABASE

    async def _look(self, look: _Look) -> None:
        trouble = ""
        try:
            await self.use()
            look.works = True
        except PunieError as error:
            trouble = str(error)
        if trouble != self._trouble:
            self._trouble = trouble
            self.log.warning("ready: %s", trouble or "the database answers again")
        look.over.set()
