"""What spans say of themselves, in the words of OpenTelemetry's conventions for generative AI.

What was said, and what tools were given and gave, is in no span unless the person who runs Punie asks for it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from punie.domain.model.usage import Usage
from punie.domain.tools.execution import cut
from punie.domain.values.display import one_line

Attributes: TypeAlias = dict[str, "str | int | float | bool"]

AGENT = "punie"
CONTENT_BYTES = 65_536
"""What of one text a span carries, where it carries any."""

_PROVIDERS: Mapping[str, str] = {
    "openai": "openai",
    "openai-chat": "openai",
    "openai-responses": "openai",
    "openai-agents": "openai",
    "anthropic": "anthropic",
    "google": "gcp.gemini",
    "google-gla": "gcp.gemini",
    "google-vertex": "gcp.vertex_ai",
    "bedrock": "aws.bedrock",
    "azure": "azure.ai.openai",
    "mistral": "mistral_ai",
    "grok": "x_ai",
    "xai": "x_ai",
}


def name_of(text: str) -> str:
    """A name that any collector takes: without control characters or halves of characters, and short."""
    return one_line(text, 256)


def model_attributes(model: str | None) -> Attributes:
    """Who answers: `provider:name` as the settings spell it."""
    provider, colon, name = (model or "").partition(":")
    if not colon:
        return {"gen_ai.provider.name": AGENT, "gen_ai.request.model": name_of(provider or "none")}
    known = _PROVIDERS.get(provider, provider)
    return {"gen_ai.provider.name": name_of(known), "gen_ai.request.model": name_of(name)}


def usage_attributes(usage: Usage) -> Attributes:
    """What it took; nothing is said of what is not known."""
    counts: Attributes = {}
    if usage.input_tokens or usage.output_tokens:
        counts["gen_ai.usage.input_tokens"] = usage.input_tokens
        counts["gen_ai.usage.output_tokens"] = usage.output_tokens
    if usage.cached_read_tokens:
        counts["gen_ai.usage.cache_read.input_tokens"] = usage.cached_read_tokens
    if usage.cached_write_tokens:
        counts["gen_ai.usage.cache_creation.input_tokens"] = usage.cached_write_tokens
    if usage.cost_usd is not None:
        counts["punie.usage.cost_usd"] = usage.cost_usd
    return counts


def message(role: str, texts: Sequence[str]) -> str:
    """A message as the conventions write it in an attribute: JSON, all ASCII, within bounds."""
    parts = [{"type": "text", "content": cut(text, CONTENT_BYTES)} for text in texts]
    return json.dumps([{"role": role, "parts": parts}])


def content(text: str) -> str:
    """A text as it is, within bounds, without what no collector takes."""
    return cut(text, CONTENT_BYTES).encode("utf-8", "replace").decode("utf-8")
