"""Foreign texts in our messages: short, on one line, without anything secret."""

from __future__ import annotations

import pytest
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.models.test import TestModel
from pydantic_ai.providers.openai import OpenAIProvider

from punie.adapters.pydantic_ai.failures import place_of
from punie.domain.model.provider import ModelSettings, quoted


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Plain sentence.", "Plain sentence."),
        ("no full stop", "no full stop."),
        ("two\n  lines\t here!", "two lines here!"),
        ("Incorrect API key provided: sk-proj-abcd****wxyz.", "Incorrect API key provided: [key]"),
        ("header Bearer abc.def-ghi_jkl", "header [key]"),
        ("my own-secret here", "my [key] here."),
        ("a skeleton key is no key", "a skeleton key is no key."),
    ],
)
def test_a_foreign_text_is_one_line_without_keys(text: str, shown: str) -> None:
    assert quoted(text, ("own-secret",)) == shown


def test_a_long_text_is_cut() -> None:
    assert len(quoted("x" * 10_000)) < 320


def test_an_address_is_shown_without_user_password_and_query(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "from-environment")
    provider = OpenAIProvider(base_url="https://u:p@host.example:8443/v1/?token=t", api_key="k")
    reached = place_of("openai-chat:m", OpenAIChatModel("m", provider=provider), ModelSettings(api_key="given"))
    assert reached.address == reached.where == "https://host.example:8443/v1"
    assert (reached.key, reached.address_from) == ("OPENAI_API_KEY", "OPENAI_BASE_URL")
    assert set(reached.secrets) == {"given", "from-environment"}
    assert "given" not in repr(reached)


def test_a_model_without_an_address_is_named_by_its_name() -> None:
    assert place_of("test", TestModel(), ModelSettings()).where == "the provider of test"
