"""The operators of the language, for JSON values: no bits, no powers, no formatting, and every result is paid for."""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeAlias, cast

from punie.adapters.expressions.functions import Meter
from punie.domain.pipelines.expressions import ExpressionError
from punie.domain.values.json_value import JsonValue, json_type

CONSTANTS: Mapping[str, JsonValue] = {"true": True, "false": False, "null": None}
"""Beside Python's own names for these."""

LONGEST_INT_BITS = 1_024

Two: TypeAlias = Callable[[Any, Any], Any]


def operators_of(meter: Meter) -> dict[type[ast.AST], Callable[..., object]]:
    """Those of one evaluation."""
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
        ast.USub: partial(_signed, operator.neg),
        ast.UAdd: partial(_signed, operator.pos),
    }


def small_enough(value: object) -> object:
    """The value. Raises `ExpressionError` for a number that is too large, or none."""
    whole = isinstance(value, int) and value.bit_length() > LONGEST_INT_BITS
    if whole or (isinstance(value, float) and not math.isfinite(value)):
        raise ExpressionError("that number is too large")
    return value


def _number(does: Two, left: object, right: object) -> object:
    if not isinstance(left, (int, float)) or not isinstance(right, (int, float)):
        raise ExpressionError(f"no arithmetic with {json_type(left)} and {json_type(right)}")
    return small_enough(does(left, right))


def _signed(does: Callable[[Any], object], value: object) -> object:
    if not isinstance(value, (int, float)):
        raise ExpressionError(f"no arithmetic with {json_type(value)}")
    return does(value)


def _added(meter: Meter, left: object, right: object) -> object:
    both = (left, right)
    if isinstance(left, str) and isinstance(right, str):
        meter.makes(len(left) + len(right))
        return left + right
    if isinstance(left, tuple) and isinstance(right, tuple):
        meter.spend(len(cast("tuple[object, ...]", left)) + len(cast("tuple[object, ...]", right)))
        return (*cast("tuple[object, ...]", left), *cast("tuple[object, ...]", right))
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
