"""The place of a symbol that a model names, as people do: by its name, and a line where that is not enough."""

from __future__ import annotations

import re

from punie.domain.errors import ToolFailedError
from punie.ports.code import CodePlace, Spot

_LINE_END = re.compile(r"\r\n|\r|\n")


def fits(place: CodePlace, outer: str, text: str) -> bool:
    """Whether the place is in the class or module of that name, as its server says, by its file, or by indentation."""
    if not outer or place.within.rpartition(".")[2] == outer:
        return True
    if place.spot.path.endswith((f"/{outer}.py", f"/{outer}/__init__.py")):
        return True
    above = _LINE_END.split(text)[: place.spot.line_1based]
    indent = _indent(above[-1]) if above else 0
    around = next((line for line in reversed(above) if line.strip() and _indent(line) < indent), "")
    return re.match(rf"\s*class\s+{re.escape(outer)}\b", around) is not None


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def in_text(path: str, text: str, name: str, line_1based: int | None, column_1based: int = 1) -> Spot:
    """The name as a whole word in that line, from the column on; without a line in its definition, or its first use.

    Raises `ToolFailedError` where it is not there.
    """
    lines = _LINE_END.split(text)
    word = re.compile(rf"(?<!\w){re.escape(name)}(?!\w)")
    if line_1based is not None:
        if not 1 <= line_1based <= len(lines):
            raise ToolFailedError(f"{path} has {len(lines)} lines, so none is {line_1based}.")
        found = word.search(lines[line_1based - 1], column_1based - 1)
        if found is None:
            raise ToolFailedError(f"{name} is not in line {line_1based} of {path}, which is: {lines[line_1based - 1]}")
        return Spot(path, line_1based, found.start() + 1)
    defined = re.compile(rf"\s*(?:(?:async\s+)?def|class|type)\s+{re.escape(name)}\b|\s*{re.escape(name)}\s*[:=]")
    numbers = [number for number, line in enumerate(lines, 1) if word.search(line)]
    if not numbers:
        raise ToolFailedError(f"{name} is not in {path}.")
    number = next((number for number in numbers if defined.match(lines[number - 1])), numbers[0])
    return in_text(path, text, name, number)
