"""Changes of one session's model, one after the other in the order in which they were asked for."""

from __future__ import annotations

from collections import deque
from types import TracebackType

import anyio
from attrs import define, field


@define(eq=False)
class Place:
    """One change's place; an async context manager that waits until those before it are done, or gave up."""

    _line: SwitchLine
    turn: anyio.Event = field(factory=anyio.Event, init=False)
    done: anyio.Event = field(factory=anyio.Event, init=False)

    async def __aenter__(self) -> None:
        try:
            await self.turn.wait()
        except BaseException:
            self._line.leave(self)
            raise

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._line.leave(self)


@define(eq=False)
class SwitchLine:
    """Lives as long as its session."""

    _places: deque[Place] = field(factory=deque[Place], init=False)

    def join(self) -> Place:
        """Take the last place, without waiting; it must be entered."""
        place = Place(self)
        self._places.append(place)
        self._places[0].turn.set()
        return place

    async def empty(self) -> None:
        """Wait until every change is done; returns at once where there is none."""
        while self._places:
            await self._places[-1].done.wait()

    def leave(self, place: Place) -> None:
        """The next one, please."""
        self._places.remove(place)
        place.done.set()
        if self._places:
            self._places[0].turn.set()
