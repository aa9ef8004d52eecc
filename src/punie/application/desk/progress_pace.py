"""How often a running call tells the client something new: a fast command must not flood an IDE (S2-90, S2-92)."""

from __future__ import annotations

from abc import ABC, abstractmethod

import anyio
from attrs import define, field

from punie.ports.machine import Clock

INTERVAL_S = 0.1
"""At most ten updates a second of each call: more than a person reads."""


class Paced(ABC):
    """Something that has held an update back and can send it now."""

    @abstractmethod
    async def send_held(self) -> None:
        """Send what was held back last, if it still matters."""
        ...


@define
class ProgressPace:
    """Sends what running calls held back, once its time came; lives as long as the session, whose task runs `keep`."""

    clock: Clock
    _waiting: dict[int, Paced] = field(factory=dict[int, Paced], init=False)
    _wake: anyio.Event = field(factory=anyio.Event, init=False)

    def later(self, call: Paced) -> None:
        """This call holds an update back."""
        self._waiting[id(call)] = call
        self._wake.set()

    def forget(self, call: Paced) -> None:
        """It ended."""
        self._waiting.pop(id(call), None)

    async def keep(self) -> None:
        """Send what is due, until cancelled; idle while nothing is held back."""
        while True:
            await self._wake.wait()
            self._wake = anyio.Event()
            await anyio.sleep(INTERVAL_S)
            due, self._waiting = self._waiting, {}
            for call in due.values():
                await call.send_held()
