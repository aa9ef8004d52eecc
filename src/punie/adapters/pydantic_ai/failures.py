"""What the library says went wrong with a model, as an error that a person can act on."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeAlias

import httpx2
from pydantic_ai.exceptions import (
    ContentFilterError,
    ModelAPIError,
    ModelAuthenticationError,
    ModelConnectionError,
    ModelContextWindowExceededError,
    ModelHTTPError,
    ModelNotFoundError,
    ModelQuotaExceededError,
    ModelRateLimitError,
    ModelRequestRejectedError,
    ModelRequestTimeout,
    ModelServerError,
    ModelTimeoutError,
    ModelUnavailableError,
    UserError,
)

from punie.adapters.pydantic_ai.connection_causes import cause_of
from punie.adapters.pydantic_ai.reached import VARIABLE, Reached
from punie.domain.errors import EngineError, EngineErrorKind
from punie.domain.model.failures import ProviderFailure, failure, missing_variable, needs_package, unusable_answer
from punie.domain.model.place import quoted, sentence_in

PROVIDERS = frozenset({"anthropic", "bedrock", "cohere", "google", "groq", "huggingface", "mistral", "xai"})
"""Extras of Pydantic AI that are extras of ours too, by the same name: pyproject.toml has them."""

_EXTRA = re.compile(r"""pip install ["']?(?P<package>[A-Za-z0-9-]+)\[(?P<extra>[a-z0-9-]+)\]""")


def set_up_error(name: str, error: Exception) -> EngineError:
    """Why the model of that name could not even be built."""
    said = str(error)
    if isinstance(error, ImportError):
        found = _EXTRA.search(said)
        if found is None:
            return needs_package(name, f"Install what {name} needs")
        package = "punie" if found["extra"] in PROVIDERS else found["package"]
        return needs_package(name, f"Install it: pip install '{package}[{found['extra']}]'")
    missing = VARIABLE.search(said)
    if missing is not None and isinstance(error, UserError):
        return missing_variable(name, missing[0])
    unknown = isinstance(error, UserError) and said.startswith("Unknown model")
    near = re.search(r"Did you mean '([^']+)'", said)
    return failure(
        EngineErrorKind.CONFIGURATION,
        f"There is no model {name!r}." if unknown else f"The model {name} cannot be set up: {quoted(said, ())}",
        (f"Did you mean {near[1]}? " if near else "")
        + "A model is named provider:name, for example openai:gpt-5, anthropic:claude-sonnet-4-5 or ollama:qwen3.",
    )


def run_error(error: Exception, reached: Reached) -> EngineError:
    """Why a turn failed at the model."""
    status = error.status_code if isinstance(error, ModelHTTPError) else None
    said = sentence_in(error.body) if isinstance(error, ModelAPIError) else ""
    for kinds, explain in _EXPLAINED:
        if isinstance(error, kinds):
            return explain(ProviderFailure(reached, status, said), error)
    return unusable_answer(reached, str(error))


def _rate_limit(told: ProviderFailure, error: Exception) -> EngineError:
    return told.rate_limit(error.retry_after if isinstance(error, ModelAPIError) else None)


def _not_found(told: ProviderFailure, error: Exception) -> EngineError:
    return told.not_found(error.suggested_model_id if isinstance(error, ModelHTTPError) else None)


ErrorTypes: TypeAlias = type[Exception] | tuple[type[Exception], ...]

# The first that fits: narrower kinds before the wider ones they belong to.
_EXPLAINED: tuple[tuple[ErrorTypes, Callable[[ProviderFailure, Exception], EngineError]], ...] = (
    (ModelAuthenticationError, lambda told, _: told.auth()),
    (ModelQuotaExceededError, lambda told, _: told.quota()),
    (ModelRateLimitError, _rate_limit),
    (ModelUnavailableError, lambda told, _: told.overloaded()),
    (ModelServerError, lambda told, _: told.server()),
    ((ModelTimeoutError, ModelRequestTimeout, httpx2.TimeoutException), lambda told, _: told.timeout()),
    ((ModelConnectionError, httpx2.HTTPError), lambda told, error: told.connection(cause_of(error))),
    (ModelContextWindowExceededError, lambda told, _: told.context()),
    (ModelNotFoundError, _not_found),
    (ContentFilterError, lambda told, _: told.filtered()),
    (ModelRequestRejectedError, lambda told, _: told.rejected()),
    (ModelAPIError, lambda told, _: told.other()),
)
