"""Where a session's models come from, and the order of the changes from one to another."""

from __future__ import annotations

from abc import abstractmethod
from collections import deque
from types import TracebackType
from typing import Protocol

import anyio
import anyio.lowlevel
from attrs import define, field, frozen

from punie.domain.errors import UnknownModelError
from punie.domain.model.choice import Effort
from punie.domain.tools.disclosure import DisclosurePolicy
from punie.ports.engine import Engine


@frozen
class ReadyModel:
    """A model that can be used now, and what depends on which one it is.

    `context_tokens` is None where nobody knows how much it reads at once.
    """

    engine: Engine
    disclosure: DisclosurePolicy
    context_tokens: int | None = None


class ModelShelf(Protocol):
    """The models that one session may use; lives as long as it."""

    @abstractmethod
    def names(self) -> tuple[str, ...]:
        """Those known by now: of the settings first, then what providers said."""
        ...

    @abstractmethod
    def efforts(self, model: str) -> tuple[Effort, ...]:
        """How hard that model can be told to think; empty where it cannot, or nobody knows yet."""
        ...

    @abstractmethod
    async def take(self, model: str) -> ReadyModel:
        """That model and never another, with everything loaded that it needs. Raises `EngineError`."""
        ...

    @abstractmethod
    async def explore(self, model: str) -> None:
        """Find out what its provider offers and whether it thinks, in bounded time; what fails is in the log alone."""
        ...


class NoShelf(ModelShelf):
    """For a session that keeps the engine it was made with."""

    def names(self) -> tuple[str, ...]:
        return ()

    def efforts(self, model: str) -> tuple[Effort, ...]:
        return ()

    async def take(self, model: str) -> ReadyModel:
        await anyio.lowlevel.checkpoint()
        raise UnknownModelError(model)

    async def explore(self, model: str) -> None:
        await anyio.lowlevel.checkpoint()


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
