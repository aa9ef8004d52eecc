"""What went wrong with a model, in words that a person can act on; no key and no request is ever quoted."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeAlias, cast

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

from punie.adapters.pydantic_ai.reached import VARIABLE, Reached, quoted
from punie.domain.errors import EngineError
from punie.domain.turn import EngineErrorKind

_EXTRA = re.compile(r'pip install "?([A-Za-z0-9-]+\[[a-z0-9-]+\])"?')


def set_up_error(name: str, error: Exception) -> EngineError:
    """Why the model of that name could not even be built."""
    said = str(error)
    if isinstance(error, ImportError):
        extra = _EXTRA.search(said)
        how = f"Install it: pip install '{extra[1]}'" if extra else f"Install what {name} needs"
        return _error(
            EngineErrorKind.CONFIGURATION,
            f"The model {name} needs a package that is not installed.",
            f"{how}, in the environment that Punie runs in; or choose another model.",
        )
    missing = VARIABLE.search(said)
    if missing is not None and isinstance(error, UserError):
        return _missing(name, missing[0])
    unknown = isinstance(error, UserError) and said.startswith("Unknown model")
    near = re.search(r"Did you mean '([^']+)'", said)
    return _error(
        EngineErrorKind.CONFIGURATION,
        f"There is no model {name!r}." if unknown else f"The model {name} cannot be set up: {quoted(said, ())}",
        (f"Did you mean {near[1]}? " if near else "")
        + "A model is named provider:name, for example openai:gpt-5, anthropic:claude-sonnet-4-5 or ollama:qwen3.",
    )


def run_error(error: Exception, reached: Reached) -> EngineError:
    """Why a turn failed at the model."""
    for kinds, explain in _EXPLAINED:
        if isinstance(error, kinds):
            return explain(error, reached)
    return _error(
        EngineErrorKind.INTERNAL,
        f"The answer of {reached.name} could not be used: {quoted(str(error), reached.secrets)}",
        "Send the prompt again; if it stays, try another model.",
    )


def _missing(name: str, variable: str) -> EngineError:
    if variable.endswith("_URL"):
        return _error(
            EngineErrorKind.CONFIGURATION,
            f"The model {name} needs the address of its server, and {variable} is not set.",
            f"Set {variable}, for example http://localhost:11434/v1.",
        )
    return _error(
        EngineErrorKind.AUTH,
        f"The model {name} needs a key, and {variable} is not set.",
        f"Set {variable} in the environment that starts Punie (in an IDE: under `env` of its agent's entry).",
    )


def _auth(error: Exception, reached: Reached) -> EngineError:
    check = f"Check {reached.key}" if reached.key else "Check the key of that provider"
    return _error(
        EngineErrorKind.AUTH,
        f"{reached.where} refused the credentials for {reached.name}{_status(error)}.",
        f"{check}: it may be wrong, expired, or not allowed to use this model.",
    )


def _quota(error: Exception, reached: Reached) -> EngineError:
    return _error(
        EngineErrorKind.RATE_LIMIT,
        f"The quota or credit at {reached.where} is used up{_status(error)}.",
        "Waiting will not help: check plan and billing there, or choose another model.",
    )


def _rate_limit(error: Exception, reached: Reached) -> EngineError:
    wait_s = error.retry_after if isinstance(error, ModelAPIError) else None
    when = f"in {max(1, round(wait_s))} seconds" if wait_s is not None else "in a minute"
    return _error(
        EngineErrorKind.RATE_LIMIT,
        f"{reached.where} takes no more requests for now{_status(error)}.",
        f"Send the prompt again {when}.",
    )


def _overloaded(error: Exception, reached: Reached) -> EngineError:
    return _error(
        EngineErrorKind.OVERLOADED,
        f"{reached.where} is overloaded or down{_status(error)}.",
        "Send the prompt again in a minute.",
    )


def _server(error: Exception, reached: Reached) -> EngineError:
    if isinstance(error, ModelHTTPError) and error.status_code in {502, 503, 504}:
        return _overloaded(error, reached)
    return _error(
        EngineErrorKind.INTERNAL,
        f"{reached.where} failed while it worked on the request{_status(error)}.",
        "What was done so far is remembered. Send the prompt again.",
    )


def _timeout(error: Exception, reached: Reached) -> EngineError:
    return _error(
        EngineErrorKind.TIMEOUT,
        f"{reached.where} did not answer in time.",
        "Send the prompt again; a local server may still be loading the model.",
    )


def _connection(error: Exception, reached: Reached) -> EngineError:
    told = f", and that {reached.address_from} is right" if reached.address_from else ""
    return _error(
        EngineErrorKind.CONNECTION,
        f"The connection to {reached.where} failed or broke off.",
        f"Check that the server is running and can be reached from here{told}; then send the prompt again.",
    )


def _context(error: Exception, reached: Reached) -> EngineError:
    return _error(
        EngineErrorKind.CONTEXT,
        f"The conversation is longer than {reached.name} can take.",
        "Start a new session, or choose a model with a larger context.",
    )


def _not_found(error: Exception, reached: Reached) -> EngineError:
    near = error.suggested_model_id if isinstance(error, ModelHTTPError) else None
    return _error(
        EngineErrorKind.CONFIGURATION,
        f"{reached.where} knows no model of the name {reached.name}{_status(error)}.",
        (f"Did you mean {near}? " if near else "") + "Check the model's name, and the address of the server.",
    )


def _filtered(error: Exception, reached: Reached) -> EngineError:
    return _error(
        EngineErrorKind.CONTENT_FILTER,
        f"The content filter at {reached.where} stopped the answer.",
        "Put the prompt in other words.",
    )


def _rejected(error: Exception, reached: Reached) -> EngineError:
    return _error(
        EngineErrorKind.CONFIGURATION,
        f"{reached.where} rejected the request{_status(error)}{_said(error, reached)}",
        "The model may not support tools or what the prompt holds: try another model.",
    )


def _other_api(error: Exception, reached: Reached) -> EngineError:
    return _error(
        EngineErrorKind.INTERNAL,
        f"{reached.where} answered with an error{_status(error)}{_said(error, reached)}",
        "Send the prompt again; if it stays, try another model.",
    )


ErrorTypes: TypeAlias = type[Exception] | tuple[type[Exception], ...]

# The first that fits: narrower kinds before the wider ones they belong to.
_EXPLAINED: tuple[
    tuple[type[Exception] | tuple[type[Exception], ...], Callable[[Exception, Reached], EngineError]], ...
] = (
    (ModelAuthenticationError, _auth),
    (ModelQuotaExceededError, _quota),
    (ModelRateLimitError, _rate_limit),
    (ModelUnavailableError, _overloaded),
    (ModelServerError, _server),
    ((ModelTimeoutError, ModelRequestTimeout, httpx2.TimeoutException), _timeout),
    ((ModelConnectionError, httpx2.HTTPError), _connection),
    (ModelContextWindowExceededError, _context),
    (ModelNotFoundError, _not_found),
    (ContentFilterError, _filtered),
    (ModelRequestRejectedError, _rejected),
    (ModelAPIError, _other_api),
)


def _error(kind: EngineErrorKind, cause: str, next_step: str) -> EngineError:
    return EngineError(kind=kind.value, cause=cause, next_step=next_step)


def _status(error: Exception) -> str:
    return f" (HTTP {error.status_code})" if isinstance(error, ModelHTTPError) else ""


def _said(error: Exception, reached: Reached) -> str:
    """The provider's own sentence where it sent one; never the body, which may hold the request."""
    body = error.body if isinstance(error, ModelAPIError) else None
    if isinstance(body, dict):
        fields = cast("dict[str, object]", body)
        inner: object = fields.get("error")
        message = cast("dict[str, object]", inner).get("message") if isinstance(inner, dict) else inner
        message = fields.get("message", message)
        if isinstance(message, str) and message.strip():
            return f": {quoted(message, reached.secrets)}"
    return "."
