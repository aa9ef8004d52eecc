"""JSON that stays within a size: long texts in it keep head and tail, and say what was left out."""

from __future__ import annotations

import json
from typing import TypeAlias

from punie.domain.tools.execution import cut

SHORTEST_CUT = 256

Plain: TypeAlias = "dict[str, Plain] | list[Plain] | str | int | float | bool | None"


def _dumped(plain: Plain) -> str:
    return json.dumps(plain, separators=(",", ":"))


def dumped_within(plain: Plain, limit: int) -> str:
    """The tree as compact JSON, all ASCII, of `limit` characters at most."""
    body, shorter = _dumped(plain), plain
    longest = limit // 2
    while len(body) > limit and longest >= SHORTEST_CUT:
        shorter = _shortened(plain, longest)
        body = _dumped(shorter)
        longest //= 2
    return body if len(body) <= limit else _dumped(_without_trees(shorter, limit))


def _shortened(plain: Plain, longest: int) -> Plain:
    """The tree with every text cut that takes more than `longest`; half of a picture is none, so it is left out."""
    if isinstance(plain, str):
        return cut(plain, longest) if len(_dumped(plain)) > longest + SHORTEST_CUT else plain
    if isinstance(plain, list):
        return [_shortened(item, longest) for item in plain]
    if isinstance(plain, dict):
        for name in ("data", "blob"):
            data = plain.get(name)
            if plain.get("type") in {"image", "resource"} and isinstance(data, str) and len(data) > longest:
                return {"type": "text", "text": f"[left out here: {len(data)} characters of base64]"}
        return {name: _shortened(item, longest) for name, item in plain.items()}
    return plain


def _without_trees(plain: Plain, limit: int) -> Plain:
    """For what is too large without long texts: the fields that are it say so instead."""
    if not isinstance(plain, dict):
        return plain
    mark = "[left out: too large to keep]"
    small = limit // (2 * max(1, len(plain)))
    kept: dict[str, Plain] = {}
    for name, item in plain.items():
        if len(_dumped(item)) <= small:
            kept[name] = item
        elif name == "prompt":
            kept[name] = {"blocks": [{"type": "text", "text": mark}]}
        elif name == "content":
            kept[name] = [{"type": "text", "text": mark}]
        else:
            kept[name] = [] if isinstance(item, list) else mark
    return kept
