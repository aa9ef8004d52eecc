"""Evaluating with simpleeval, reduced to the nodes that the reading allows; every value costs work."""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, TypeAlias, cast

from simpleeval import EvalWithCompoundTypes, InvalidExpression

from punie.adapters.expressions.functions import FUNCTIONS, Meter
from punie.domain.pipelines.expressions import Expression, ExpressionError, StepView, WorkLeft
from punie.domain.values.json_value import JsonValue, NotJsonError, freeze, json_type

CONSTANTS: Mapping[str, JsonValue] = {"true": True, "false": False, "null": None}
"""JSON's names, beside Python's own."""

LONGEST_INT_BITS = 1_024

ALLOWED = (
    ast.Expression, ast.Name, ast.Load, ast.Store, ast.Attribute, ast.Subscript, ast.Slice, ast.Constant,
    ast.UnaryOp, ast.Not, ast.USub, ast.UAdd, ast.BinOp, ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod,
    ast.BoolOp, ast.And, ast.Or, ast.Compare, ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.In, ast.NotIn,
    ast.Is, ast.IsNot, ast.IfExp, ast.Call, ast.Dict, ast.List, ast.Tuple, ast.ListComp, ast.GeneratorExp,
    ast.comprehension,
)  # fmt: skip
"""The nodes of the language: the reading refuses all others, and the evaluation knows none of them."""

Two: TypeAlias = Callable[[Any, Any], Any]


def operators_of(meter: Meter) -> dict[type[ast.AST], Callable[..., object]]:
    """The operators of one evaluation."""
    numbers: dict[type[ast.AST], Two] = {
        ast.Sub: operator.sub,
        ast.Div: lambda left, right: left / right,
        ast.FloorDiv: lambda left, right: left // right,
        ast.Mod: operator.mod,
    }
    comparisons: dict[type[ast.AST], Two] = {
        ast.Eq: operator.eq,
        ast.NotEq: operator.ne,
        ast.Is: operator.eq,  # values have no identity
        ast.IsNot: operator.ne,
        ast.Lt: operator.lt,
        ast.LtE: operator.le,
        ast.Gt: operator.gt,
        ast.GtE: operator.ge,
        ast.In: _is_in,
        ast.NotIn: lambda one, many: not _is_in(one, many),
    }
    return {
        **{kind: partial(_number, does) for kind, does in numbers.items()},
        **{kind: partial(_compared, meter, does) for kind, does in comparisons.items()},
        ast.Add: partial(_added, meter),
        ast.Mult: partial(_multiplied, meter),
        ast.Not: operator.not_,
        ast.USub: partial(_number, operator.neg),
        ast.UAdd: partial(_number, operator.pos),
    }


def small_enough(value: object) -> object:
    """Return the value. Raises `ExpressionError` for a number that is too large or not finite."""
    whole = isinstance(value, int) and value.bit_length() > LONGEST_INT_BITS
    if whole or (isinstance(value, float) and not math.isfinite(value)):
        raise ExpressionError("that number is too large")
    return value


def _number(does: Callable[..., object], *values: object) -> object:
    if not all(isinstance(value, (int, float)) for value in values):
        raise ExpressionError(f"no arithmetic with {' and '.join(map(json_type, values))}")
    return small_enough(does(*values))


def _added(meter: Meter, left: object, right: object) -> object:
    both = (left, right)
    if isinstance(left, str) and isinstance(right, str):
        meter.makes(len(left) + len(right))
        return left + right
    if isinstance(left, tuple) and isinstance(right, tuple):
        one, other = cast("tuple[object, ...]", left), cast("tuple[object, ...]", right)
        meter.spend(len(one) + len(other))
        return one + other
    return _number(operator.add, *both)


def _multiplied(meter: Meter, left: object, right: object) -> object:
    if isinstance(left, (str, tuple)):
        left, right = right, cast("object", left)
    if isinstance(left, int) and isinstance(right, str):
        meter.makes(max(0, left) * len(right))
        return right * left
    if isinstance(left, int) and isinstance(right, tuple):
        meter.spend(max(0, left) * len(cast("tuple[object, ...]", right)))
        return cast("tuple[object, ...]", right) * left
    return _number(operator.mul, left, right)


def _compared(meter: Meter, does: Two, left: object, right: object) -> object:
    meter.sees(left, right)
    return does(left, right)


def _is_in(one: object, many: object) -> bool:
    if isinstance(many, str):
        if isinstance(one, str):
            return one in many
        raise ExpressionError(f"a string holds no {json_type(one).split()[-1]}")
    if isinstance(many, (tuple, Mapping)):
        return one in many
    raise ExpressionError(f"{json_type(many)} holds nothing that could be looked for")


SHOWN_KEYS = 12


def evaluated(
    expression: Expression, names: Mapping[str, JsonValue | Mapping[str, StepView]], left: WorkLeft
) -> JsonValue:
    """The value of an expression; see `Expressions.value`."""
    if not isinstance(expression.compiled, ast.Expression):
        raise ExpressionError("it was not parsed here")
    evaluator: Any = _Evaluator(Meter(left), {**CONSTANTS, **names})  # the library says nothing of types
    try:
        return freeze(evaluator.eval(expression.text, expression.compiled.body))
    except ExpressionError:
        raise
    except (InvalidExpression, NotJsonError, TypeError, ValueError, ArithmeticError, LookupError) as error:
        raise ExpressionError(_said(error)) from None
    except RecursionError:
        raise ExpressionError("its values are nested too deeply") from None


def _said(error: Exception) -> str:
    if isinstance(error, ZeroDivisionError):
        return "it divides by zero"
    if isinstance(error, IndexError):
        return "there is no item at that place"
    return str(error) or type(error).__name__


class _Evaluator(EvalWithCompoundTypes):
    """One evaluation. Values are JSON: no attribute of a Python object is ever looked at."""

    def __init__(self, meter: Meter, names: Mapping[str, object]) -> None:
        functions = {name: partial(_called, name, function, meter) for name, function in FUNCTIONS.items()}
        super().__init__(operators=operators_of(meter), functions=functions, names={})  # pyright: ignore[reportUnknownMemberType] - the library says nothing of types
        # The library adds functions and kinds of nodes of its own; those that the reading refuses are left out too.
        self.functions = functions
        handlers = cast("dict[type[ast.AST], Callable[[Any], Any]]", self.nodes)
        self._handlers: Mapping[type[ast.AST], Callable[[Any], Any]] = {
            kind: handler for kind, handler in handlers.items() if kind in ALLOWED
        }
        self._names = dict(names)
        self._meter = meter

    def _eval(self, node: ast.AST) -> Any:
        value = self._raw(node)
        return value.output if isinstance(value, StepView) else value

    def _raw(self, node: ast.AST) -> Any:
        """As `_eval`, but a step stays a step, because the name behind it may be one of its members."""
        self._meter.spend(1)
        handler = self._handlers.get(type(node))
        if handler is None:
            raise ExpressionError(f"{type(node).__name__} is not part of the language")
        return handler(node)

    def _eval_name(self, node: ast.Name) -> Any:
        if node.id not in self._names:
            raise ExpressionError(f"there is no {node.id!r} here")
        return self._names[node.id]

    def _eval_attribute(self, node: ast.Attribute) -> Any:
        return _member(self._raw(node.value), node.attr, ast.unparse(node.value)[-60:])

    def _eval_subscript(self, node: ast.Subscript) -> Any:
        container, key = self._raw(node.value), self._eval(node.slice)
        if isinstance(key, str):
            return _member(container, key, ast.unparse(node.value)[-60:])
        if isinstance(container, StepView):
            container = container.output
        if not isinstance(container, (str, tuple, list)):
            raise ExpressionError(f"{json_type(container)} has no places")
        if isinstance(key, slice):
            self._meter.copies(cast("str", container))
        elif isinstance(key, bool) or not isinstance(key, int):
            raise ExpressionError("a place in a list is a whole number")
        return cast("Any", container)[key]

    def _eval_list(self, node: ast.List) -> Any:
        return tuple(self._eval(item) for item in node.elts)

    def _eval_dict(self, node: ast.Dict) -> Any:
        made: dict[str, object] = {}
        for key, value in zip(node.keys, node.values, strict=True):
            name = None if key is None else self._eval(key)
            if not isinstance(name, str):
                raise ExpressionError("the keys of an object are strings")
            made[name] = self._eval(value)
        return made

    def _eval_comprehension(self, node: ast.ListComp | ast.GeneratorExp) -> Any:
        return tuple(self._rows(node.elt, node.generators))

    def _rows(self, element: ast.expr, generators: list[ast.comprehension]) -> Iterable[object]:
        if not generators:
            yield self._eval(element)
            return
        first, rest = generators[0], generators[1:]
        values = self._eval(first.iter)
        if not isinstance(values, (tuple, list)):
            raise ExpressionError(f"expected a list after `in`, got {json_type(values)}")
        outer = dict(self._names)
        for value in cast("Iterable[object]", values):
            self._meter.spend(1)
            self._bind(first.target, value)
            if all(self._eval(condition) for condition in first.ifs):
                yield from self._rows(element, rest)
        self._names = outer

    def _bind(self, target: ast.expr, value: object) -> None:
        if isinstance(target, ast.Name):
            self._names[target.id] = value
            return
        names = cast("ast.Tuple", target).elts
        if not isinstance(value, (tuple, list)) or len(cast("tuple[object, ...]", value)) != len(names):
            raise ExpressionError(f"expected a list of {len(names)} to take apart")
        for name, item in zip(names, cast("tuple[object, ...]", value), strict=True):
            self._bind(name, item)


def _called(name: str, function: Callable[..., object], meter: Meter, *arguments: object) -> object:
    try:
        return small_enough(function(meter, *arguments))
    except ExpressionError:
        raise
    except (TypeError, ValueError, ArithmeticError) as error:
        said = "that is not how many arguments it takes" if "positional" in str(error) else error
        raise ExpressionError(f"{name}(): {said}") from None


def _member(value: object, key: str, shown: str) -> object:
    """The value of that key. No attribute of a Python object is read."""
    if isinstance(value, StepView):
        try:
            return value.member(key)
        except KeyError:
            return _member(value.output, key, shown)
    if isinstance(value, Mapping):
        table = cast("Mapping[str, object]", value)
        if key in table:
            return table[key]
        there = ", ".join(list(table)[:SHOWN_KEYS]) or "nothing"
        raise ExpressionError(f"{shown} has no {key[:60]!r}; there is {there[:300]}")
    raise ExpressionError(f"{shown} is {json_type(value)}, which has no {key[:60]!r}")
