"""The environment's variables that set providers up; imports nothing heavy."""

from __future__ import annotations

from typing import Final

KEYS: Final = {
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
"""The variable of each provider's key, by the part of a model's name before the colon."""

ALSO: Final = {"GOOGLE_API_KEY": ("GEMINI_API_KEY",)}
"""Older names of a key's variable, which are read where the newer is not set."""

ADDRESSES: Final = {
    "openai": "OPENAI_BASE_URL",
    "openai-chat": "OPENAI_BASE_URL",
    "openai-responses": "OPENAI_BASE_URL",
    "anthropic": "ANTHROPIC_BASE_URL",
    "ollama": "OLLAMA_BASE_URL",
}
"""The variable of the address, of providers that have one."""
