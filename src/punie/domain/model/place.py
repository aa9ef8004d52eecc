"""Where a model is and how it is reached; what of that may be shown, without a key, a user name or a password."""

from __future__ import annotations

import re
from typing import cast
from urllib.parse import urlsplit

from attrs import field, frozen

_LOOKS_SECRET = re.compile(r"\b(?:(?:sk|pk|rk|gsk|xai|hf|ghp)[-_]|AIza|Bearer )[A-Za-z0-9*._-]{8,}")
_QUOTED_CHARS = 300


@frozen
class ModelSettings:
    """How a model is reached and asked, where the variables of its provider do not say so; every field is optional.

    `base_url` and `api_key` take the place of `OPENAI_BASE_URL`, `OPENAI_API_KEY` and the like. `max_output_tokens` and
    `temperature` are sent with every request.
    """

    base_url: str | None = None
    api_key: str | None = field(default=None, repr=False)
    max_output_tokens: int | None = None
    temperature: float | None = None


@frozen
class ModelPlace:
    """Where a model is, for messages: its name, its address without credentials, the variables that set it up."""

    name: str
    address: str | None
    key: str
    address_from: str | None
    secrets: tuple[str, ...] = field(default=(), repr=False)

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


def bare_address(address: str | None) -> str | None:
    """The address without user, password and query."""
    if not address:
        return None
    parts = urlsplit(address)
    host = parts.hostname or ""
    port = f":{parts.port}" if parts.port else ""
    return f"{parts.scheme}://{host}{port}{parts.path.rstrip('/')}"


def sentence_in(body: object) -> str:
    """The provider's own sentence in the body of an error; empty where it has none.

    Never the body itself, which may hold the request.
    """
    if not isinstance(body, dict):
        return ""
    fields = cast("dict[str, object]", body)
    inner: object = fields.get("error")
    message = cast("dict[str, object]", inner).get("message") if isinstance(inner, dict) else inner
    message = fields.get("message", message)
    return message if isinstance(message, str) and message.strip() else ""
