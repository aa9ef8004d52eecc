"""What a model can read at once is known by its name, cautiously where it is not."""

from __future__ import annotations

import pytest

from punie.bootstrap.settings.settings import Settings
from punie.domain.tools.disclosure import DEFAULT_CONTEXT_TOKENS


@pytest.mark.parametrize(("model", "tokens"), [
    ("openai-chat:gpt-5-mini", 272_000), ("openai:gpt-4.1", 1_000_000), ("openai:gpt-4o-mini", 128_000),
    ("openai:gpt-4", 8_000), ("openai:gpt-4-0613", 8_000), ("openai:o3-mini", 200_000),
    ("anthropic:claude-sonnet-4-5", 200_000), ("google-gla:gemini-2.5-pro", 1_000_000),
    ("openai:gpt-3.5-turbo", 16_000),
    ("groq:openai/gpt-oss-120b", 128_000),
])  # fmt: skip
def test_a_known_model_has_its_makers_figure(model: str, tokens: int) -> None:
    assert Settings({"model": model}).disclosure.context_tokens == tokens


@pytest.mark.parametrize("model", [None, "", "direct", "script:/home/x/o1.json5", "openai-chat:stub"])
def test_any_other_has_the_cautious_one(model: str | None) -> None:
    assert Settings({"model": model}).disclosure.context_tokens == DEFAULT_CONTEXT_TOKENS
