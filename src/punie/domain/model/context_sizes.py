"""The lengths of models' contexts, by the models' names."""

from __future__ import annotations

import re
from functools import lru_cache

from punie.domain.model.provider import OF_FILES

_FAMILIES = (
    (r"gpt-4\.1|gemini", 1_000_000),
    (r"gpt-5", 272_000),
    (r"claude|\bo[134](-|$)|grok-4", 200_000),
    (r"gpt-4o|gpt-4-turbo|mistral|deepseek|qwen|llama-?[34]|gpt-oss", 128_000),
    (r"gpt-3\.5", 16_000),
    (r"gpt-4(-|$)", 8_000),
)
"""Patterns in names of models; the makers' own figures, rounded down. The first that fits is used."""


@lru_cache(maxsize=64)
def known_context_tokens(model: str | None) -> int | None:
    """The length of a model's context, by its name with or without the provider; None where the name is unknown."""
    name = (model or "").casefold()
    if name.startswith(OF_FILES):
        return None  # a file may have any name
    return next((tokens for pattern, tokens in _FAMILIES if re.search(pattern, name)), None)
