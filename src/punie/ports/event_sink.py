"""The one-way side lane for what happens during a turn."""

from __future__ import annotations

from abc import abstractmethod
from typing import Protocol, runtime_checkable

from punie.domain.events import SessionEvent


@runtime_checkable
class EventSink(Protocol):
    """Takes the events of one session; lives as long as it."""

    @abstractmethod
    async def emit(self, event: SessionEvent) -> None:
        """Take the next event. Order is kept, nothing is lost, nothing is repeated.

        It may wait when the listener is slow: that is how a slow client slows the engine down instead of filling the
        memory. It does not raise when the listener is gone.
        """
        ...
