"""The rows of all programs: each program in one row, each row proved by its examples."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from shellsight.programs.registry import FAMILIES, PROGRAMS
from shellsight.programs.row import Row
from shellsight.report import Standing
from tests.shellsight.told import told

ROWS = [row for family in FAMILIES for row in family]


def examples(row: Row) -> Iterator[tuple[str, str, str]]:
    """Each program of the row with a line about it and what the row says that line does."""
    for example in row.examples:
        line, _, wanted = example.rpartition(" => ")
        if line.startswith("*"):
            yield from ((name, name + line[1:], wanted) for name in row.names.split())
        else:
            yield line.split()[0], line, wanted


def test_every_program_has_one_row() -> None:
    counted = Counter(name for row in ROWS for name in row.names.split())
    assert [name for name, times in counted.items() if times > 1] == []
    assert counted.keys() == PROGRAMS.keys()


def test_every_program_has_an_example() -> None:
    shown = {name for row in ROWS for name, _, _ in examples(row)}
    assert sorted(PROGRAMS.keys() - shown) == []
    assert sorted(shown - PROGRAMS.keys()) == []


def test_every_example_is_true() -> None:
    wrong = {
        line: f"{found}, not {wanted}"
        for row in ROWS
        for _, line, wanted in examples(row)
        if (found := told(line)) != wanted
    }
    assert wrong == {}


def test_the_examples_name_no_standing_that_does_not_exist() -> None:
    known = {standing.name.lower() for standing in Standing}
    assert {wanted.partition(":")[0] for row in ROWS for _, _, wanted in examples(row)} == known
