"""The small language of pipeline files, in which steps hand values on."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Protocol, runtime_checkable

from punie.domain.expressions import Expression, StepView, WorkLeft
from punie.domain.json_value import JsonValue


@runtime_checkable
class Expressions(Protocol):
    """Parses and evaluates; keeps nothing, so that one serves the whole process.

    Evaluating has no effect, reaches nothing but the names it is given, gives the same value each time and ends: what
    it may cost is bounded, in time and in memory, whatever the expression and the values are.
    """

    @abstractmethod
    def parse(self, text: str) -> Expression:
        """The expression, with all that it refers to. Raises `ExpressionError` where it cannot be read."""
        ...

    @abstractmethod
    def value(
        self, expression: Expression, names: Mapping[str, JsonValue | Mapping[str, StepView]], left: WorkLeft
    ) -> JsonValue:
        """What it comes to with these names, a frozen JSON value. Raises `ExpressionError`."""
        ...
