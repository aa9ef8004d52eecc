"""Whether arguments fit a JSON Schema."""

from __future__ import annotations

from abc import abstractmethod
from typing import Protocol, runtime_checkable

from punie.domain.json_value import JsonObject


@runtime_checkable
class ArgumentValidator(Protocol):
    """Checks schemas and arguments; lives as long as the session, so that a schema is compiled once.

    It reads no file and no address: a schema that refers to a remote document is refused.
    """

    @abstractmethod
    def schema_problem(self, schema: JsonObject) -> str | None:
        """Why the schema cannot be used (does not compile, unknown draft, remote reference), or None."""
        ...

    @abstractmethod
    def problems(self, schema: JsonObject, arguments: JsonObject) -> tuple[str, ...]:
        """What is wrong with the arguments, each naming the field and what was expected; empty if nothing is."""
        ...
