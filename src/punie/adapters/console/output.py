"""Tables of 80 columns."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from punie.domain.values.display import display_safe

WIDTH = 80
GAP = 2
NARROWEST_LAST = 24


def table(headers: Sequence[str], rows: Sequence[Sequence[object]], width: int = WIDTH) -> str:
    """A table with a line of headers; numbers are aligned right, and the last column is wrapped to the width.

    Cells are display-safe and without line breaks. Empty `rows` give the headers alone.
    """
    cells = [[_cell(value) for value in row] for row in rows]
    widths = [max([len(header), *(len(row[place]) for row in cells)]) for place, header in enumerate(headers)]
    numeric = [bool(rows) and all(_is_number(row[place]) for row in rows) for place in range(len(headers))]
    left = sum(widths[:-1]) + GAP * (len(widths) - 1)
    last = max(width - left, NARROWEST_LAST)
    lines = [line for row in [list(headers), *cells] for line in _lines(row, widths, numeric, last)]
    return "".join(f"{line.rstrip()}\n" for line in lines)


def _lines(row: list[str], widths: list[int], numeric: list[bool], last: int) -> Iterator[str]:
    columns = zip(row[:-1], widths, numeric, strict=False)
    head = "".join((cell.rjust(size) if right else cell.ljust(size)) + " " * GAP for cell, size, right in columns)
    if numeric[-1]:
        yield head + row[-1].rjust(widths[-1])
        return
    wrapped = textwrap.wrap(row[-1], last, break_on_hyphens=False) or [""]
    yield head + wrapped[0]
    yield from (" " * len(head) + more for more in wrapped[1:])


def _cell(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.1f}"
    return " ".join(display_safe(str(value)).split()) if value is not None else ""


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
