"""The models that providers list."""

from __future__ import annotations

import anyio
from attrs import define, field

from punie.ports.engine import ModelEngine

FRESH_S = 300.0
"""How long a provider's list of models is used before the provider is asked again."""


@define
class ProviderLists:
    """The models that providers list, by the part of a model's name before the colon; lives as long as the process.

    After a failure, the next session asks again.
    """

    _names: dict[str, tuple[str, ...]] = field(factory=dict[str, tuple[str, ...]], init=False)
    _asked_at: dict[str, float] = field(factory=dict[str, float], init=False)
    _asking: dict[str, anyio.Lock] = field(factory=dict[str, anyio.Lock], init=False)

    def of(self, model: str) -> tuple[str, ...]:
        """The names that the model's provider listed; empty before the provider was asked."""
        return self._names.get(provider_of(model), ())

    async def ask(self, model: str, engine: ModelEngine) -> None:
        """Ask the provider, unless its list is fresh. Raises `EngineError`."""
        provider = provider_of(model)
        async with self._asking.setdefault(provider, anyio.Lock()):
            now = anyio.current_time()
            if now - self._asked_at.get(provider, -FRESH_S) < FRESH_S:
                return
            self._names[provider] = await engine.siblings()
            self._asked_at[provider] = now


def provider_of(model: str) -> str:
    """The part of a model's name before the colon."""
    return model.partition(":")[0]
