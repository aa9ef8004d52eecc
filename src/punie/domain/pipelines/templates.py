"""Templates: values with `${...}` in them, parsed once when the file is read and filled in for each call.

A value that was filled in is not searched again: text of a tool or a model that has `${` in it stays text.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias, cast

from attrs import define, frozen

from punie.domain.pipelines.expressions import VALUE_LIMIT, Expression, ExpressionError, Problem, weighed
from punie.domain.values.json_value import JsonValue, freeze, thaw

Parse: TypeAlias = Callable[[str], Expression]
Evaluate: TypeAlias = Callable[[Expression], JsonValue]

OPEN = "${"
MOST_BRACES = 50
"""The most `}` that are tried as an expression's end."""

HANDED_ON = 4
"""The cost of a value that goes into a call: it is copied, written and checked several times."""


@frozen
class Fixed:
    """A value without expressions."""

    value: JsonValue


@frozen
class Computed:
    """A string that is one expression and nothing else: the value keeps its type."""

    expression: Expression


@frozen
class Text:
    """A string with expressions in it: values other than strings go in as JSON."""

    parts: tuple[str | Expression, ...]


@frozen
class Items:
    """A list with an expression somewhere in it."""

    items: tuple[Template, ...]


@frozen
class Table:
    """An object with an expression somewhere in it."""

    entries: tuple[tuple[str, Template], ...]


Template: TypeAlias = Fixed | Computed | Text | Items | Table


@define
class TemplateReader:
    """Reads the templates of one file; their problems are added to `problems`."""

    parse: Parse
    problems: list[Problem]

    def read(self, value: object, where: str) -> Template:
        """The template that a value makes; None is in the place of a value with a problem."""
        if isinstance(value, str):
            return self._string(value, where)
        if isinstance(value, Mapping):
            entries = tuple(
                (str(key), self.read(item, f"{where}.{key}"))
                for key, item in cast("dict[object, object]", value).items()
            )
            if all(isinstance(item, Fixed) for _, item in entries):
                return Fixed(freeze({key: cast("Fixed", item).value for key, item in entries}))
            return Table(entries)
        if isinstance(value, (list, tuple)):
            listed = cast("list[object]", value)
            items = tuple(self.read(item, f"{where}[{place}]") for place, item in enumerate(listed))
            if all(isinstance(item, Fixed) for item in items):
                return Fixed(tuple(cast("Fixed", item).value for item in items))
            return Items(items)
        if value is None or isinstance(value, (bool, int, float)):
            return Fixed(value)
        self.problems.append(Problem(f"a {type(value).__name__} has no form in JSON; write it as a string", where))
        return Fixed(None)

    def expression(self, text: str, where: str) -> Expression | None:
        """A string that must be one expression, with or without `${}` around it."""
        bare = text.strip()
        if bare.startswith(OPEN):
            read = self._string(bare, where)
            if isinstance(read, Computed):
                return read.expression
            if isinstance(read, Text):
                self.problems.append(Problem("expected one expression and nothing beside it", where))
            return None
        try:
            return self.parse(bare)
        except ExpressionError as error:
            self._cannot_read(where, error)
            return None

    def _cannot_read(self, where: str, error: ExpressionError) -> None:
        self.problems.append(Problem(str(error), where, position_1based=error.position + 1))

    def _string(self, text: str, where: str) -> Template:
        try:
            parts = tuple(_parts(text, self.parse))
        except ExpressionError as error:
            self._cannot_read(where, error)
            return Fixed(None)
        if len(parts) == 1 and isinstance(parts[0], Expression):
            return Computed(parts[0])
        if all(isinstance(part, str) for part in parts):
            return Fixed("".join(cast("tuple[str, ...]", parts)))
        return Text(parts)


def _parts(text: str, parse: Parse) -> Iterator[str | Expression]:
    """The literal pieces and the expressions; `$${` is a literal `${`."""
    place = 0
    literal = ""
    while (found := text.find(OPEN, place)) >= 0:
        if found > place and text[found - 1] == "$":
            literal += text[place : found - 1] + OPEN
            place = found + len(OPEN)
            continue
        literal += text[place:found]
        if literal:
            yield literal
            literal = ""
        expression, place = _expression_at(text, found + len(OPEN), parse)
        yield expression
    literal += text[place:]
    if literal or not text:
        yield literal


def _expression_at(text: str, start: int, parse: Parse) -> tuple[Expression, int]:
    """The expression that begins there, and where the text goes on: at the first `}` that leaves one that reads."""
    first: ExpressionError | None = None
    end = text.find("}", start)
    tries = 0
    while end >= 0 and tries < MOST_BRACES:
        tries += 1
        try:
            return parse(text[start:end]), end + 1
        except ExpressionError as error:
            first = first or ExpressionError(str(error), start + error.position)
        end = text.find("}", end + 1)
    raise first or ExpressionError("`${` without a `}` after it; a literal one is written `$${`", start - len(OPEN))


@define
class Filling:
    """Fills templates for one call, in bounded size; lives as long as the call. `spend` counts the work."""

    evaluate: Evaluate
    spend: Callable[[int], None]
    room: int = VALUE_LIMIT

    def fill(self, template: Template) -> JsonValue:
        """The value. Raises `ExpressionError`."""
        match template:
            case Fixed(value):
                return value
            case Computed(expression):
                return self._value(expression)
            case Text(parts):
                return "".join(part if isinstance(part, str) else plain_text(self._value(part)) for part in parts)
            case Items(items):
                return tuple(self.fill(item) for item in items)
            case Table(entries):
                return freeze({key: self.fill(item) for key, item in entries})

    def _value(self, expression: Expression) -> JsonValue:
        value = self.evaluate(expression)
        heavy, seen = weighed(value, self.room)
        self.spend(HANDED_ON * seen)
        self.room -= heavy
        if self.room < 0:
            raise ExpressionError(f"what the expressions come to is larger than {VALUE_LIMIT} characters")
        return value


def plain_text(value: JsonValue) -> str:
    """The form of a value inside a text: a string unchanged, anything else as JSON in its own order."""
    return value if isinstance(value, str) else json.dumps(thaw(value), ensure_ascii=False)


def expressions_in(template: Template | None) -> Iterator[Expression]:
    """Every expression of a template, in order; none where there is no template."""
    match template:
        case Computed(expression):
            yield expression
        case Text(parts):
            yield from (part for part in parts if isinstance(part, Expression))
        case Items(items):
            for item in items:
                yield from expressions_in(item)
        case Table(entries):
            for _, item in entries:
                yield from expressions_in(item)
        case Fixed() | None:
            return
