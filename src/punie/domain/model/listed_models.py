"""The list of models that a provider of OpenAI's protocols gives, and what of it is believed."""

from __future__ import annotations

import json
from typing import Final, cast

from punie.domain.errors import EngineError, EngineErrorKind

LIMIT_S: Final = 2.0
LIMIT_BYTES: Final = 1_048_576
LIMIT_MODELS: Final = 200
LIMIT_NAME: Final = 200


def names_in(body: bytes) -> tuple[str, ...]:
    """The usable names in the list, 200 at most, in its order. Raises `ValueError` where it is no JSON."""
    value: object = json.loads(body)
    data = cast("dict[str, object]", value).get("data") if isinstance(value, dict) else None
    entries = cast("list[object]", data) if isinstance(data, list) else []
    names = (cast("dict[str, object]", entry).get("id") for entry in entries if isinstance(entry, dict))
    fit = (name for name in names if isinstance(name, str) and 0 < len(name) <= LIMIT_NAME and name.isprintable())
    return tuple(dict.fromkeys(fit))[:LIMIT_MODELS]


def unreadable_list(error: Exception) -> EngineError:
    """Why there is no list."""
    return EngineError(
        EngineErrorKind.CONNECTION.value,
        f"The provider's list of models cannot be read ({type(error).__name__}: {error}).",
        "Name models in the setting `models` instead.",
    )
