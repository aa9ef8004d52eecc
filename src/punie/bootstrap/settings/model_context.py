"""How much a model can read at once, by its name: what a share of the context is a share of."""

from __future__ import annotations

import re

from punie.domain.tools.disclosure import DEFAULT_CONTEXT_TOKENS

_FAMILIES = (
    (r"gpt-4\.1|gemini", 1_000_000),
    (r"gpt-5", 272_000),
    (r"claude|\bo[134](-|$)|grok-4", 200_000),
    (r"gpt-4o|gpt-4-turbo|mistral|deepseek|qwen|llama-?[34]|gpt-oss", 128_000),
    (r"gpt-3\.5", 16_000),
    (r"gpt-4(-|$)", 8_000),
)
"""By how a name begins to be known; the makers' own figures, rounded down. The first that fits counts."""


def known_context_tokens(model: str | None) -> int | None:
    """The length of the context of the model of that name, with or without its provider; None where it is not known."""
    name = (model or "").casefold()
    if name.startswith(("script:", "gguf:")):
        return None  # a file may have any name
    return next((tokens for pattern, tokens in _FAMILIES if re.search(pattern, name)), None)


def context_tokens(model: str | None) -> int:
    """The same, with a cautious figure for a model that is not known."""
    return known_context_tokens(model) or DEFAULT_CONTEXT_TOKENS
