"""Where a model is and what sets it up, in a form that may be shown: no key, no user and password in an address."""

from __future__ import annotations

import os
import re
from urllib.parse import urlsplit

from attrs import field, frozen
from pydantic_ai.models import Model

from punie.adapters.pydantic_ai.settings import ModelSettings

_KEYS = {
    "openai": "OPENAI_API_KEY",
    "openai-chat": "OPENAI_API_KEY",
    "openai-responses": "OPENAI_API_KEY",
    "anthropic": "ANTHROPIC_API_KEY",
    "google": "GOOGLE_API_KEY",
    "google-gla": "GOOGLE_API_KEY",
    "openrouter": "OPENROUTER_API_KEY",
    "groq": "GROQ_API_KEY",
    "mistral": "MISTRAL_API_KEY",
    "deepseek": "DEEPSEEK_API_KEY",
    "xai": "XAI_API_KEY",
    "cohere": "CO_API_KEY",
    "together": "TOGETHER_API_KEY",
    "fireworks": "FIREWORKS_API_KEY",
    "cerebras": "CEREBRAS_API_KEY",
    "moonshotai": "MOONSHOTAI_API_KEY",
    "github": "GITHUB_API_KEY",
    "huggingface": "HF_TOKEN",
    "ollama": "OLLAMA_API_KEY",
    "vercel": "VERCEL_AI_GATEWAY_API_KEY",
}
_ADDRESSES = {
    "openai": "OPENAI_BASE_URL",
    "openai-chat": "OPENAI_BASE_URL",
    "openai-responses": "OPENAI_BASE_URL",
    "anthropic": "ANTHROPIC_BASE_URL",
    "ollama": "OLLAMA_BASE_URL",
}
VARIABLE = re.compile(r"\b[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)*_(?:KEY|TOKEN|URL)\b")
_LOOKS_SECRET = re.compile(r"\b(?:(?:sk|pk|rk|gsk|xai|hf|ghp)[-_]|AIza|Bearer )[A-Za-z0-9*._-]{8,}")
_QUOTED_CHARS = 300


@frozen
class Reached:
    """Where a model is, for messages: its name, its address without credentials, the variables that set it up."""

    name: str
    address: str | None
    key: str
    address_from: str | None
    secrets: tuple[str, ...] = field(default=(), repr=False)

    @classmethod
    def of(cls, name: str, model: Model, settings: ModelSettings) -> Reached:
        """What there is to say of a model that was built."""
        provider = name.partition(":")[0]
        key = _KEYS.get(provider, "")
        known = (settings.api_key, os.environ.get(key) if key else None)
        return cls(
            name=name,
            address=_bare(model.base_url),
            key=key,
            address_from=_ADDRESSES.get(provider),
            secrets=tuple(secret for secret in known if secret),
        )

    @property
    def where(self) -> str:
        """The address, or the provider where it has none of its own."""
        return self.address or f"the provider of {self.name}"


def quoted(text: str, secrets: tuple[str, ...] = ()) -> str:
    """One short line of a foreign text, without what is or looks like a key."""
    for secret in secrets:
        text = text.replace(secret, "[key]")
    text = " ".join(_LOOKS_SECRET.sub("[key]", text).split())
    text = text if len(text) <= _QUOTED_CHARS else f"{text[:_QUOTED_CHARS]} [...]"
    return text if text.endswith((".", "!", "?", "]")) else f"{text}."


def _bare(address: str | None) -> str | None:
    """The address without user, password and query."""
    if not address:
        return None
    parts = urlsplit(address)
    host = parts.hostname or ""
    port = f":{parts.port}" if parts.port else ""
    return f"{parts.scheme}://{host}{port}{parts.path.rstrip('/')}"
