"""Expressions in pipeline files, parsed: their references, and the bounds of their evaluation.

The language itself is behind a port of `ports/tools`; values are JSON.
"""

from __future__ import annotations

from collections.abc import Mapping

from attrs import define, field, frozen

from punie.domain.values.json_value import JsonValue


@frozen
class Problem:
    """One problem of a pipeline file.

    `where` is the key (`steps[1].arguments.path`), `step` that step's id, or its number from 1. `line_1based` is the
    line of the file, `position_1based` the character in the string at that key; None where they are not known. A
    `warning` does not keep the pipeline from running: a tool may be found later.
    """

    message: str
    where: str = ""
    step: str | None = None
    line_1based: int | None = None
    position_1based: int | None = None
    warning: bool = False

    def sentence(self) -> str:
        """The problem in words, without file and line."""
        step = "" if self.step is None else f"step {self.step}, "
        character = "" if self.position_1based is None else f", character {self.position_1based}"
        place = f"{step}{self.where}{character}".removesuffix(", ")
        return f"{place}: {self.message}" if place else self.message


INPUTS = "inputs"
STEPS = "steps"
ITEM = "item"
INDEX = "index"
LOOP_NAMES = (ITEM, INDEX)

TEXT_LIMIT = 2_000
"""Characters of one expression."""

WORK_LIMIT = 250_000
"""The most that one evaluation may cost: 1 for each node, item made, 16 characters made and 64 characters read."""

RUN_WORK_LIMIT = 4_000_000
"""The most that all evaluations of one run may cost, with those of the pipelines in it: a few seconds of work."""

VALUE_LIMIT = 8_388_608
"""Characters, as JSON, of the values of all expressions of one step, or of an output."""


class ExpressionError(ValueError):
    """An expression that cannot be read or evaluated; `position` is that in its text, from 0."""

    def __init__(self, message: str, position: int = 0) -> None:
        super().__init__(message)
        self.position = position


@frozen
class Reference:
    """A name in an expression: `path` is ("inputs", "x"), ("steps", "read", "text"), ("item",)."""

    path: tuple[str, ...]
    position: int = 0


@frozen
class Expression:
    """One expression, parsed. `compiled` is its adapter's."""

    text: str
    references: tuple[Reference, ...] = ()
    compiled: object = field(default=None, eq=False, repr=False)


@frozen
class StepView:
    """A step that ran, as an expression sees it: its data, and a few facts about it.

    `steps.ID` is the data. `steps.ID.KEY` is that key of the data, else one of these fields. Of a step with `for_each`
    the text and the status are lists, with an entry an item.
    """

    output: JsonValue
    text: JsonValue
    status: JsonValue

    def member(self, key: str) -> JsonValue:
        """The value of `steps.ID.KEY`. Raises `KeyError`."""
        if isinstance(self.output, Mapping) and key in self.output:
            return self.output[key]
        return {"text": self.text, "status": self.status, "output": self.output}[key]


@define
class WorkLeft:
    """The cost that a run's evaluations have left; lives as long as the run."""

    units: int = RUN_WORK_LIMIT

    def spend(self, units: int) -> None:
        """Subtract a cost. Raises `ExpressionError` where too little is left."""
        self.units -= units
        if self.units < 0:
            raise ExpressionError("the expressions of this run take too much work")


def weight(value: JsonValue, limit: int) -> int:
    """The characters of the value as JSON, roughly; counting stops beyond `limit`, however large the value is."""
    return weighed(value, limit)[0]


def weighed(value: JsonValue, limit: int) -> tuple[int, int]:
    """The weight, and the number of values that were counted for it."""
    total, seen, ahead = 0, 0, [value]
    while ahead and total <= limit:
        one = ahead.pop()
        seen += 1
        if isinstance(one, str):
            total += len(one) + 2
        elif isinstance(one, Mapping):
            total += 2 + sum(len(key) + 3 for key in one)
            ahead.extend(one.values())
        elif isinstance(one, (tuple, list)):
            total += 2 + len(one)
            if total <= limit:
                ahead.extend(one)
        else:
            total += 8
    return total, seen
