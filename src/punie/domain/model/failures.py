"""What went wrong with a model, in words that a person can act on; no key and no request is ever quoted.

Every engine that speaks to a provider says it with these, so that the same cause reads the same whichever one runs.
"""

from __future__ import annotations

from attrs import frozen

from punie.domain.errors import EngineError, EngineErrorKind
from punie.domain.model.place import ModelPlace, quoted

AGAIN = "Send the prompt again; if it stays, try another model."


def needs_package(name: str, how: str) -> EngineError:
    """A package is missing without which that model cannot be used; `how` says in a clause what to do."""
    return failure(
        EngineErrorKind.CONFIGURATION,
        f"The model {name} needs a package that is not installed.",
        f"{how}, in the environment that Punie runs in; or choose another model.",
    )


def missing_variable(name: str, variable: str) -> EngineError:
    """A variable that the model cannot do without is not set: the address of its server, or its key."""
    if variable.endswith("_URL"):
        return failure(
            EngineErrorKind.CONFIGURATION,
            f"The model {name} needs the address of its server, and {variable} is not set.",
            f"Set {variable}, for example http://localhost:11434/v1.",
        )
    return failure(
        EngineErrorKind.AUTH,
        f"The model {name} needs a key, and {variable} is not set.",
        f"`punie setup model` in a terminal asks for it and keeps it. Or set {variable} in the environment that starts "
        "Punie (in an IDE: under `env` of its agent's entry).",
    )


def unusable_answer(place: ModelPlace, said: str) -> EngineError:
    """What came back cannot be understood."""
    return failure(
        EngineErrorKind.INTERNAL,
        f"The answer of {place.name} could not be used: {quoted(said, place.secrets)}",
        AGAIN,
    )


@frozen
class ProviderFailure:
    """What a provider answered instead of the model's words; lives until it is told.

    `status` is HTTP's, None where there was none. `said` is the provider's own sentence, empty where it sent none.
    """

    place: ModelPlace
    status: int | None = None
    said: str = ""

    def auth(self) -> EngineError:
        """It takes no requests with this key."""
        check = f"Check {self.place.key}" if self.place.key else "Check the key of that provider"
        return failure(
            EngineErrorKind.AUTH,
            f"{self.place.where} refused the credentials for {self.place.name}{self._status}.",
            f"{check}: it may be wrong, expired, or not allowed to use this model. `punie setup model` takes another.",
        )

    def quota(self) -> EngineError:
        """What was paid for is used up."""
        return failure(
            EngineErrorKind.RATE_LIMIT,
            f"The quota or credit at {self.place.where} is used up{self._status}.",
            "Waiting will not help: check plan and billing there, or choose another model.",
        )

    def rate_limit(self, wait_s: float | None) -> EngineError:
        """Too many requests; `wait_s` is how long it asks to be left alone, where it says so."""
        when = f"in {max(1, round(wait_s))} seconds" if wait_s is not None else "in a minute"
        return failure(
            EngineErrorKind.RATE_LIMIT,
            f"{self.place.where} takes no more requests for now{self._status}.",
            f"Send the prompt again {when}.",
        )

    def overloaded(self) -> EngineError:
        """It is down, or has too much to do."""
        return failure(
            EngineErrorKind.OVERLOADED,
            f"{self.place.where} is overloaded or down{self._status}.",
            "Send the prompt again in a minute.",
        )

    def server(self) -> EngineError:
        """It broke over the request."""
        if self.status in {502, 503, 504}:
            return self.overloaded()
        return failure(
            EngineErrorKind.INTERNAL,
            f"{self.place.where} failed while it worked on the request{self._status}.",
            "What was done so far is remembered. Send the prompt again.",
        )

    def timeout(self) -> EngineError:
        """Nothing came for too long."""
        return failure(
            EngineErrorKind.TIMEOUT,
            f"{self.place.where} did not answer in time.",
            "Send the prompt again; a local server may still be loading the model.",
        )

    def connection(self, why: str = "") -> EngineError:
        """It cannot be reached, or went away amid its answer; `why` is a clause, empty where nobody knows."""
        told = f", and that {self.place.address_from} is right" if self.place.address_from else ""
        return failure(
            EngineErrorKind.CONNECTION,
            f"The connection to {self.place.where} failed or broke off{f': {why}' if why else ''}.",
            f"Check that the server is running and can be reached from here{told}; then send the prompt again.",
        )

    def context(self) -> EngineError:
        """The request is longer than the model's context."""
        return failure(
            EngineErrorKind.CONTEXT,
            f"The conversation is longer than {self.place.name} can take.",
            "Start a new session, or choose a model with a larger context.",
        )

    def not_found(self, near: str | None = None) -> EngineError:
        """It has no such model; `near` is one with a similar name."""
        return failure(
            EngineErrorKind.CONFIGURATION,
            f"{self.place.where} knows no model of the name {self.place.name}{self._status}.",
            (f"Did you mean {near}? " if near else "") + "Check the model's name, and the address of the server.",
        )

    def filtered(self) -> EngineError:
        """Its filter stopped the answer."""
        return failure(
            EngineErrorKind.CONTENT_FILTER,
            f"The content filter at {self.place.where} stopped the answer.",
            "Put the prompt in other words.",
        )

    def rejected(self) -> EngineError:
        """It takes no request of this form."""
        return failure(
            EngineErrorKind.CONFIGURATION,
            f"{self.place.where} rejected the request{self._status}{self._told}",
            "The model may not support tools or what the prompt holds: try another model.",
        )

    def other(self) -> EngineError:
        """Whatever else it answered."""
        return failure(
            EngineErrorKind.INTERNAL,
            f"{self.place.where} answered with an error{self._status}{self._told}",
            AGAIN,
        )

    @property
    def _status(self) -> str:
        return "" if self.status is None else f" (HTTP {self.status})"

    @property
    def _told(self) -> str:
        return f": {quoted(self.said, self.place.secrets)}" if self.said else "."


def failure(kind: EngineErrorKind, cause: str, next_step: str) -> EngineError:
    """An error with a cause and what to do about it, both whole sentences."""
    return EngineError(kind=kind.value, cause=cause, next_step=next_step)
