"""Reading expressions: Python's syntax for values, restricted to a list of nodes."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator, Mapping

from attrs import define, field

from punie.adapters.expressions.evaluator import ALLOWED, CONSTANTS, evaluated, small_enough
from punie.adapters.expressions.functions import FUNCTIONS
from punie.domain.pipelines.expressions import (
    INDEX,
    INPUTS,
    ITEM,
    STEPS,
    TEXT_LIMIT,
    Expression,
    ExpressionError,
    Reference,
    StepView,
    WorkLeft,
)
from punie.domain.values.json_value import JsonValue
from punie.ports.tools import Expressions

DEPTH_LIMIT = 40
ROOTS = frozenset({INPUTS, STEPS, ITEM, INDEX})


class PythonExpressions(Expressions):
    """Names, keys, slices, operators, conditions, comprehensions and a list of functions; without state."""

    def parse(self, text: str) -> Expression:
        if len(text) > TEXT_LIMIT:
            raise ExpressionError(f"an expression of {len(text)} characters; at most {TEXT_LIMIT} are read")
        source = text.strip()
        if not source:
            raise ExpressionError("an expression is missing")
        reading = _Reading(source, len(text) - len(text.lstrip()))
        tree = reading.tree()
        reading.check(tree)
        reading.look(tree.body, frozenset())
        return Expression(text, tuple(reading.references), tree)

    def value(
        self, expression: Expression, names: Mapping[str, JsonValue | Mapping[str, StepView]], left: WorkLeft
    ) -> JsonValue:
        return evaluated(expression, names, left)


@define
class _Reading:
    """The reading of one expression; `offset` is the number of spaces before `source`."""

    source: str
    offset: int
    references: list[Reference] = field(factory=list[Reference])

    def tree(self) -> ast.Expression:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # about doubtful escapes and comparisons, which are up to the author
                return ast.parse(self.source, mode="eval")
        except SyntaxError as error:
            # The parser gives no place where a text ends too early.
            place = (
                self._column(error.lineno or 1, error.offset - 1) if error.offset else self._column(1, len(self.source))
            )
            raise ExpressionError(f"it cannot be read: {error.msg}", place) from None
        except (ValueError, RecursionError, MemoryError):
            raise ExpressionError("it cannot be read: it is nested too deeply, or holds what no text may") from None

    def check(self, tree: ast.Expression) -> None:
        """Check that every node is on the list and not too deep. Raises `ExpressionError`."""
        ahead: list[tuple[ast.AST, int]] = [(tree, 0)]
        while ahead:
            node, depth = ahead.pop()
            if depth > DEPTH_LIMIT:
                raise ExpressionError(f"it is nested more than {DEPTH_LIMIT} deep")
            if not isinstance(node, ALLOWED):
                words = _WORDS.get(type(node), type(node).__name__)
                raise self._error(node, f"{words} is not part of the language")
            self._check_one(node)
            ahead += [(child, depth + 1) for child in ast.iter_child_nodes(node)]

    def _check_one(self, node: ast.AST) -> None:
        match node:
            case ast.Constant(value=value):
                self._check_constant(node, value)
            case ast.Call(func=func, keywords=keywords):
                self._check_call(node, func, named=bool(keywords))
            case ast.Dict(keys=keys) if None in keys:
                raise self._error(node, "** is not part of the language")
            case ast.comprehension(is_async=is_async) if is_async:
                raise self._error(node, "async is not part of the language")
            case _:
                pass

    def _check_constant(self, node: ast.AST, value: object) -> None:
        if value is not None and not isinstance(value, (str, int, float)):
            raise self._error(node, "bytes, complex numbers and ... are not part of the language")
        try:
            small_enough(value)
        except ExpressionError as error:
            raise self._error(node, str(error)) from None

    def _check_call(self, node: ast.AST, func: ast.expr, *, named: bool) -> None:
        if not isinstance(func, ast.Name) or func.id not in FUNCTIONS:
            called = ast.unparse(func)[:40] if isinstance(func, (ast.Name, ast.Attribute)) else "that"
            raise self._error(node, f"{called}() is not a function of the language; there are {', '.join(FUNCTIONS)}")
        if named:
            raise self._error(node, "arguments of functions have no names")

    def look(self, node: ast.AST, bound: frozenset[str]) -> None:
        """Collect the references; `bound` are the names that comprehensions around the node define."""
        match node:
            case ast.ListComp() | ast.GeneratorExp():
                inner = bound
                for generator in node.generators:
                    self.look(generator.iter, inner)
                    inner |= frozenset(self._targets(generator.target))
                    for condition in generator.ifs:
                        self.look(condition, inner)
                self.look(node.elt, inner)
            case ast.Call():
                for argument in node.args:
                    self.look(argument, bound)
            case ast.Name() | ast.Attribute() | ast.Subscript():
                self._look_at_name(node, bound)
            case _:
                for child in ast.iter_child_nodes(node):
                    self.look(child, bound)

    def _targets(self, target: ast.expr) -> Iterator[str]:
        match target:
            case ast.Name(id=name):
                if name in ROOTS or name in FUNCTIONS or name in CONSTANTS:
                    raise self._error(target, f"{name} has a meaning already; take another name")
                yield name
            case ast.Tuple(elts=elements):
                for element in elements:
                    yield from self._targets(element)
            case _:
                raise self._error(target, "expected a name here")

    def _look_at_name(self, node: ast.Name | ast.Attribute | ast.Subscript, bound: frozenset[str]) -> None:
        path, rest = _path(node)
        for expression in rest:
            self.look(expression, bound)
        if not path:
            return
        if path[0] in bound or path[0] in CONSTANTS:
            return
        if path[0] not in ROOTS:
            there = f"there are {INPUTS}, {STEPS}, and {ITEM} and {INDEX} in for_each"
            raise self._error(node, f"there is no {path[0][:40]!r} here; {there}")
        self.references.append(Reference(path, self._place(node)))

    def _error(self, node: ast.AST, message: str) -> ExpressionError:
        return ExpressionError(message, self._place(node))

    def _place(self, node: ast.AST) -> int:
        lineno, column = getattr(node, "lineno", 1), getattr(node, "col_offset", 0)
        line = self.source.split("\n")[lineno - 1] if lineno <= self.source.count("\n") + 1 else ""
        characters = len(line.encode("utf-8", "surrogatepass")[:column].decode("utf-8", "ignore"))
        return self._column(lineno, characters)

    def _column(self, lineno: int, column: int) -> int:
        lines = self.source.split("\n")
        return self.offset + sum(len(line) + 1 for line in lines[: lineno - 1]) + column


def _path(node: ast.AST) -> tuple[tuple[str, ...], list[ast.AST]]:
    """The constant keys from the root on, and the expressions on the way that are looked at separately.

    `steps.read["text"]` is a path of three; keys behind a computed place are no part of it.
    """
    keys: list[str] = []
    rest: list[ast.AST] = []
    while True:
        match node:
            case ast.Attribute(value=value, attr=attr):
                keys.append(attr)
                node = value
            case ast.Subscript(value=value, slice=ast.Constant(value=str(key))):
                keys.append(key)
                node = value
            case ast.Subscript(value=value, slice=place):
                keys.clear()
                rest.append(place)
                node = value
            case ast.Name(id=name):
                return (name, *reversed(keys)), rest
            case _:
                return (), [*rest, node]


_WORDS: Mapping[type[ast.AST], str] = {
    ast.Lambda: "a lambda",
    ast.JoinedStr: "an f-string",
    ast.Pow: "**",
    ast.LShift: "<<",
    ast.RShift: ">>",
    ast.Starred: "* before a value",
    ast.NamedExpr: ":=",
    ast.DictComp: "a comprehension of an object",
    ast.SetComp: "a comprehension of a set",
    ast.Set: "a set",
    ast.Await: "await",
    ast.Yield: "yield",
    ast.YieldFrom: "yield",
    ast.BitOr: "|",
    ast.BitAnd: "&",
    ast.BitXor: "^",
    ast.Invert: "~",
    ast.MatMult: "@",
}
