"""How a model is reached and asked; imports nothing heavy."""

from __future__ import annotations

from attrs import field, frozen


@frozen
class ModelSettings:
    """How to reach the model where the provider's own variables shall not say it; all optional.

    `base_url` and `api_key` go to the provider instead of `OPENAI_BASE_URL`, `OPENAI_API_KEY` and their like.
    """

    base_url: str | None = None
    api_key: str | None = field(default=None, repr=False)
    max_output_tokens: int | None = None
    temperature: float | None = None
