"""Where a session's models come from: the composition root knows which engine a name means."""

from __future__ import annotations

from abc import abstractmethod
from typing import Protocol

import anyio.lowlevel
from attrs import frozen

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
