"""The functions of the language. Each spends the cost of its work before it does the work."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence, Sized
from itertools import starmap
from typing import Any, TypeAlias, cast

from attrs import define

from punie.domain.pipelines.expressions import VALUE_LIMIT, WORK_LIMIT, ExpressionError, WorkLeft, weight
from punie.domain.values.json_value import JsonValue, thaw

SEEN_CHARACTERS = 64
SEEN_IN_TREES = 8
MADE_CHARACTERS = 16


@define
class Meter:
    """The cost that one evaluation has left, which counts for the run as well; lives as long as the evaluation."""

    left: WorkLeft
    units: int = WORK_LIMIT

    def spend(self, units: int) -> None:
        """Subtract a cost. Raises `ExpressionError` where too little is left."""
        self.units -= units
        if self.units < 0:
            raise ExpressionError("it takes too much work: make it simpler, or give it less")
        self.left.spend(units)

    def sees(self, *values: object) -> None:
        """Spend the cost of reading the values whole."""
        for value in values:
            if isinstance(value, str):
                self.spend(len(value) // SEEN_CHARACTERS)
            elif isinstance(value, (Mapping, tuple, list)):
                limit = max(self.units, 1) * SEEN_IN_TREES  # a tree that shares its branches may be huge
                self.spend(1 + weight(cast("JsonValue", value), limit) // SEEN_IN_TREES)

    def makes(self, characters: int) -> None:
        """Spend the cost of making a text of that length."""
        self.spend(characters // MADE_CHARACTERS)

    def copies(self, value: Sequence[object]) -> None:
        """Spend the cost of copying the value, or a part of it."""
        self.spend(len(value) // MADE_CHARACTERS if isinstance(value, str) else len(value))


Function: TypeAlias = Callable[..., object]


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError("expected a string")
    return value


def _texts(values: object) -> tuple[str, ...]:
    if not isinstance(values, (tuple, list)):
        raise TypeError("expected a list of strings")
    return tuple(map(_text, cast("Sequence[object]", values)))


def _items(values: object) -> Sequence[JsonValue]:
    if isinstance(values, (tuple, list)):
        return cast("Sequence[JsonValue]", values)
    raise TypeError("expected a list")


def _table(value: object) -> Mapping[str, JsonValue]:
    if not isinstance(value, Mapping):
        raise TypeError("expected an object")
    return cast("Mapping[str, JsonValue]", value)


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError("expected a number")
    return value


def _len(_meter: Meter, value: object) -> int:
    if isinstance(value, (str, tuple, list, Mapping)):
        return len(cast("Sequence[object]", value))
    raise TypeError("expected a string, a list or an object")


def _str(meter: Meter, value: object) -> str:
    if isinstance(value, str):
        return value
    size = weight(cast("JsonValue", value), VALUE_LIMIT)
    meter.makes(2 * size)
    return json.dumps(thaw(cast("JsonValue", value)), ensure_ascii=False)


def _numeral(value: object) -> str | float:
    if isinstance(value, str) and len(value) > 300:
        raise ValueError("too long for a number")
    if isinstance(value, (str, int, float)):
        return value
    raise TypeError("expected a string or a number")


def _int(meter: Meter, value: object) -> int:
    meter.spend(1)
    return int(_numeral(value))


def _float(_meter: Meter, value: object) -> float:
    return float(_numeral(value))


def _bool(_meter: Meter, value: object) -> bool:
    return bool(value)


def _join(meter: Meter, values: object, separator: object = "") -> str:
    texts, between = _texts(values), _text(separator)
    meter.spend(len(texts))
    meter.makes(sum(map(len, texts)) + len(between) * len(texts))
    return between.join(texts)


def _split(meter: Meter, text: object, separator: object) -> tuple[str, ...]:
    whole, between = _text(text), _text(separator)
    if not between:
        raise ValueError("the separator is empty")
    meter.sees(whole)
    meter.makes(len(whole))
    meter.spend(2 * whole.count(between))
    return tuple(whole.split(between))


def _lines(meter: Meter, text: object) -> tuple[str, ...]:
    whole = _text(text)
    found = _split(meter, whole, "\n")
    return tuple(line.removesuffix("\r") for line in (found[:-1] if not found[-1] else found))


def _mapped(change: Callable[[str], str]) -> Function:
    def changed(meter: Meter, text: object) -> str:
        whole = _text(text)
        meter.makes(2 * len(whole))
        return change(whole)

    return changed


def _replacement(meter: Meter, text: object, old: object, new: object) -> tuple[str, str, str]:
    """The arguments of a replacement, whose cost is spent."""
    whole, before, after = _text(text), _text(old), _text(new)
    if not before:
        raise ValueError("what is to be replaced is empty")
    meter.sees(whole)
    meter.makes(len(whole) + whole.count(before) * max(0, len(after) - len(before)))
    return whole, before, after


def _replace(meter: Meter, text: object, old: object, new: object) -> str:
    whole, before, after = _replacement(meter, text, old, new)
    return whole.replace(before, after)


def _word(text: str) -> str:
    """A pattern for the text without a letter, digit or _ before or behind it."""
    return rf"(?<!\w){re.escape(text)}(?!\w)"


def _replace_word(meter: Meter, text: object, old: object, new: object) -> str:
    whole, before, after = _replacement(meter, text, old, new)
    meter.sees(whole)
    return re.sub(_word(before), lambda _found: after, whole)


def _has_word(meter: Meter, text: object, word: object) -> bool:
    whole, wanted = _text(text), _text(word)
    meter.sees(whole, whole)
    return bool(wanted) and re.search(_word(wanted), whole) is not None


def _startswith(_meter: Meter, text: object, start: object) -> bool:
    return _text(text).startswith(_text(start))


def _endswith(_meter: Meter, text: object, end: object) -> bool:
    return _text(text).endswith(_text(end))


def _count(meter: Meter, where: object, what: object) -> int:
    meter.sees(where, what)
    if isinstance(where, str):
        return where.count(_text(what))
    return sum(item == what for item in _items(where))


def _comparable(meter: Meter, values: object) -> list[str] | list[float]:
    items = _items(values)
    meter.spend(2 * len(items))
    meter.sees(values)
    if all(isinstance(item, str) for item in items):
        return list(cast("Sequence[str]", items))
    return [_number(item) for item in items]


def _min(meter: Meter, *values: object) -> object:
    return min(_comparable(meter, values[0] if len(values) == 1 else values))


def _max(meter: Meter, *values: object) -> object:
    return max(_comparable(meter, values[0] if len(values) == 1 else values))


def _sorted(meter: Meter, values: object) -> tuple[object, ...]:
    found = _comparable(meter, values)
    meter.spend(len(found) * max(1, len(found).bit_length()) // 4)
    return tuple(sorted(found))


def _for_each(read: Callable[[object], Sized], change: Callable[[Any], object]) -> Function:
    """A function of a list or an object that costs 1 for each of its items."""

    def changed(meter: Meter, values: object) -> object:
        items = read(values)
        meter.spend(len(items))
        return change(items)

    return changed


def _unique(meter: Meter, values: object) -> tuple[object, ...]:
    """Each value once, in the order of first occurrence."""
    items = _items(values)
    meter.spend(2 * len(items))
    seen: dict[str, object] = {}
    for item in items:
        seen.setdefault(f"{type(item).__name__} {_str(meter, item)}", item)
    return tuple(seen.values())


def _flat(meter: Meter, values: object) -> tuple[object, ...]:
    """A list of lists as one list."""
    meter.spend(sum(len(_items(inner)) for inner in _items(values)) + len(_items(values)))
    return tuple(item for inner in _items(values) for item in _items(inner))


def _get(_meter: Meter, table: object, key: object, default: object = None) -> object:
    return default if table is None else _table(table).get(_text(key), cast("JsonValue", default))


def _range(meter: Meter, start: object, end: object = None) -> tuple[int, ...]:
    first, last = (0, start) if end is None else (start, end)
    low, high = int(_number(first)), int(_number(last))
    meter.spend(max(0, high - low))
    return tuple(range(low, high))


def _round(_meter: Meter, number: object, digits: object = None) -> object:
    return round(_number(number)) if digits is None else round(_number(number), max(-20, min(20, int(_number(digits)))))


def _abs(_meter: Meter, number: object) -> object:
    return abs(_number(number))


def _zip(meter: Meter, *lists: object) -> tuple[object, ...]:
    shortest = min((len(_items(one)) for one in lists), default=0)
    meter.spend(shortest * (1 + len(lists)))
    return tuple(starmap(lambda *row: row, zip(*map(_items, lists), strict=False)))


FUNCTIONS: Mapping[str, Function] = {
    "len": _len, "str": _str, "int": _int, "float": _float, "bool": _bool, "round": _round, "abs": _abs,
    "min": _min, "max": _max, "sum": _for_each(_items, lambda items: sum(map(_number, items))),
    "any": _for_each(_items, any), "all": _for_each(_items, all), "range": _range, "zip": _zip,
    "sorted": _sorted, "reversed": _for_each(_items, lambda items: tuple(reversed(items))), "unique": _unique,
    "flat": _flat, "count": _count, "keys": _for_each(_table, tuple),
    "values": _for_each(_table, lambda table: tuple(table.values())), "get": _get,
    "join": _join, "split": _split, "lines": _lines, "replace": _replace, "replace_word": _replace_word,
    "has_word": _has_word, "startswith": _startswith, "endswith": _endswith,
    "lower": _mapped(str.lower), "upper": _mapped(str.upper), "strip": _mapped(str.strip),
}  # fmt: skip
"""The functions by name; the first argument of each is the meter."""
