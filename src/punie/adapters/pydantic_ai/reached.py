"""Where a model of the library is, for messages."""

from __future__ import annotations

import os
import re

from attrs import frozen
from pydantic_ai.models import Model

from punie.adapters.pydantic_ai.variables import ADDRESSES, KEYS
from punie.domain.model.place import ModelPlace, ModelSettings, bare_address

VARIABLE = re.compile(r"\b[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)*_(?:KEY|TOKEN|URL)\b")


@frozen
class Reached(ModelPlace):
    """The place of a model that was built."""

    @classmethod
    def of(cls, name: str, model: Model, settings: ModelSettings) -> Reached:
        """What there is to say of it."""
        provider = name.partition(":")[0]
        key = KEYS.get(provider, "")
        known = (settings.api_key, os.environ.get(key) if key else None)
        return cls(
            name=name,
            address=bare_address(model.base_url),
            key=key,
            address_from=ADDRESSES.get(provider),
            secrets=tuple(secret for secret in known if secret),
        )
