"""The functions of the language: each pays for what it looks at and makes before it does so."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from itertools import starmap
from typing import TypeAlias, cast

from attrs import define

from punie.domain.pipelines.expressions import VALUE_LIMIT, WORK_LIMIT, ExpressionError, WorkLeft, weight
from punie.domain.values.json_value import JsonValue, thaw

SEEN_CHARACTERS = 64
SEEN_IN_TREES = 8
MADE_CHARACTERS = 16


@define
class Meter:
    """What one evaluation may still cost; spends of the run's as well."""

    left: WorkLeft
    units: int = WORK_LIMIT

    def spend(self, units: int) -> None:
        """Raises `ExpressionError` where nothing is left."""
        self.units -= units
        if self.units < 0:
            raise ExpressionError("it takes too much work: make it simpler, or give it less")
        self.left.spend(units)

    def sees(self, *values: object) -> None:
        """The values are looked at, all through."""
        for value in values:
            if isinstance(value, str):
                self.spend(len(value) // SEEN_CHARACTERS)
            elif isinstance(value, (Mapping, tuple, list)):
                limit = max(self.units, 1) * SEEN_IN_TREES  # a tree that shares its branches may be endless
                self.spend(1 + weight(cast("JsonValue", value), limit) // SEEN_IN_TREES)

    def makes(self, characters: int) -> None:
        """A text of that length is about to be made."""
        self.spend(characters // MADE_CHARACTERS)

    def copies(self, value: Sequence[object]) -> None:
        """A part of it, or all, is about to be copied."""
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


def _int(meter: Meter, value: object) -> int:
    if isinstance(value, str) and len(value) > 300:
        raise ValueError("too long for a number")
    meter.spend(1)
    if isinstance(value, (str, int, float)):
        return int(value)
    raise TypeError("expected a string or a number")


def _float(_meter: Meter, value: object) -> float:
    if isinstance(value, str) and len(value) > 300:
        raise ValueError("too long for a number")
    if isinstance(value, (str, int, float)):
        return float(value)
    raise TypeError("expected a string or a number")


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


def _replace(meter: Meter, text: object, old: object, new: object) -> str:
    whole, before, after = _text(text), _text(old), _text(new)
    if not before:
        raise ValueError("what is to be replaced is empty")
    meter.sees(whole)
    meter.makes(len(whole) + whole.count(before) * max(0, len(after) - len(before)))
    return whole.replace(before, after)


def _replace_word(meter: Meter, text: object, old: object, new: object) -> str:
    """As `replace`, where `old` stands alone: no letter, digit or _ before or behind it."""
    whole, before, after = _text(text), _text(old), _text(new)
    if not before:
        raise ValueError("what is to be replaced is empty")
    meter.sees(whole, whole)
    meter.makes(len(whole) + whole.count(before) * max(0, len(after) - len(before)))
    return re.sub(rf"(?<!\w){re.escape(before)}(?!\w)", lambda _found: after, whole)


def _has_word(meter: Meter, text: object, word: object) -> bool:
    whole, wanted = _text(text), _text(word)
    meter.sees(whole, whole)
    return bool(wanted) and re.search(rf"(?<!\w){re.escape(wanted)}(?!\w)", whole) is not None


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


def _sum(meter: Meter, values: object) -> object:
    meter.spend(len(_items(values)))
    return sum(_number(item) for item in _items(values))


def _sorted(meter: Meter, values: object) -> tuple[object, ...]:
    found = _comparable(meter, values)
    meter.spend(len(found) * max(1, len(found).bit_length()) // 4)
    return tuple(sorted(found))


def _reversed(meter: Meter, values: object) -> tuple[object, ...]:
    meter.spend(len(_items(values)))
    return tuple(reversed(_items(values)))


def _unique(meter: Meter, values: object) -> tuple[object, ...]:
    """Each value once, in the order in which they come first."""
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


def _keys(meter: Meter, table: object) -> tuple[str, ...]:
    meter.spend(len(_table(table)))
    return tuple(_table(table))


def _values(meter: Meter, table: object) -> tuple[object, ...]:
    meter.spend(len(_table(table)))
    return tuple(_table(table).values())


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


def _any(meter: Meter, values: object) -> bool:
    meter.spend(len(_items(values)))
    return any(_items(values))


def _all(meter: Meter, values: object) -> bool:
    meter.spend(len(_items(values)))
    return all(_items(values))


def _zip(meter: Meter, *lists: object) -> tuple[object, ...]:
    shortest = min((len(_items(one)) for one in lists), default=0)
    meter.spend(shortest * (1 + len(lists)))
    return tuple(starmap(lambda *row: row, zip(*map(_items, lists), strict=False)))


FUNCTIONS: Mapping[str, Function] = {
    "len": _len, "str": _str, "int": _int, "float": _float, "bool": _bool, "round": _round, "abs": _abs,
    "min": _min, "max": _max, "sum": _sum, "any": _any, "all": _all, "range": _range, "zip": _zip,
    "sorted": _sorted, "reversed": _reversed, "unique": _unique, "flat": _flat, "count": _count,
    "keys": _keys, "values": _values, "get": _get,
    "join": _join, "split": _split, "lines": _lines, "replace": _replace, "replace_word": _replace_word,
    "has_word": _has_word, "startswith": _startswith, "endswith": _endswith,
    "lower": _mapped(str.lower), "upper": _mapped(str.upper), "strip": _mapped(str.strip),
}  # fmt: skip
"""By name; each takes the meter first."""
