"""What `punie setup model` offers to choose from, and what it takes for a model, an address and a key."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import urlsplit

from attrs import frozen

from punie.bootstrap.engines import SCRIPT_PREFIX
from punie.domain.model.choice import DIRECT

LONGEST_KEY = 1_024
"""What every system's keyring holds, twice over for those that count in UTF-16."""

LONGEST_MODEL = 200
_FILES = (SCRIPT_PREFIX, "gguf:")


class AnswerError(ValueError):
    """What was given cannot be used; the sentence says why and never repeats a key."""


@frozen
class Offer:
    """One entry of the menu: the provider as models are named by it, and a model of its to begin with."""

    provider: str
    label: str
    model: str
    address: str | None = None
    """Where such a server usually is; None for a provider whose place is known."""

    takes_key: bool = True


OFFERS = (
    Offer("openai-chat", "OpenAI", "gpt-5"),
    Offer("anthropic", "Anthropic", "claude-sonnet-4-5"),
    Offer("google", "Google", "gemini-2.5-pro"),
    Offer("openrouter", "OpenRouter", "openai/gpt-5"),
    Offer("ollama", "Ollama on this machine or another", "qwen3", "http://localhost:11434/v1", takes_key=False),
    Offer("openai-chat", "another server that speaks OpenAI's protocol", "", "http://localhost:8000/v1"),
)


def model_name(provider: str | None, model: str) -> str:
    """A model's whole name; that of a file absolute, for settings are read anywhere. Raises `AnswerError`."""
    model = model.strip()
    if provider is not None and not model.startswith(f"{provider}:"):
        model = f"{provider.strip()}:{model}"
    prefix, colon, name = model.partition(":")
    if model == DIRECT:
        return model
    if f"{prefix}{colon}" in _FILES and name and name.isprintable():
        return f"{prefix}:{os.path.abspath(Path(name).expanduser())}"  # noqa: PTH100 - a link stays what it is
    if not prefix or not name or not model.isprintable() or " " in model or len(model) > LONGEST_MODEL:
        raise AnswerError("a model is named provider:name, for example openai-chat:gpt-5")
    return model


def asks_nobody(model: str) -> bool:
    """Whether that model is none of a provider, and takes no key."""
    return model == DIRECT or model.startswith(_FILES)


def checked_key(key: str) -> str:
    """The key without blanks around it. Raises `AnswerError`."""
    key = key.strip()
    if not key:
        raise AnswerError("the key is empty")
    if not key.isascii() or not key.isprintable() or " " in key or len(key) > LONGEST_KEY:
        raise AnswerError(f"that is no key: one is at most {LONGEST_KEY} plain characters without a blank")
    return key


def checked_address(address: str) -> str:
    """The address of a server, without a slash at its end. Raises `AnswerError`."""
    address = address.strip().rstrip("/")
    try:
        parts = urlsplit(address)
        usable = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
        usable = usable and "@" not in parts.netloc and not parts.query and not parts.fragment
    except ValueError:
        usable = False
    if not usable or not address.isascii() or not address.isprintable() or " " in address:
        raise AnswerError("the address has to be like https://host/v1, without a name, a password or a query")
    return address
