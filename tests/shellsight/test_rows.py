"""The rows of all programs: each program in one row, each row proved by its examples."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from shellsight.programs.registry import FAMILIES, PROGRAMS
from shellsight.programs.row import Row
from shellsight.report import Standing
from tests.shellsight.shell_lines import report
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


def test_the_safe_examples_of_a_plain_row_are_plain_and_no_others() -> None:
    wrong = [
        (line, part.argv)
        for row in ROWS
        for name, line, wanted in examples(row)
        if wanted.startswith("safe")
        for part in report(line).parts
        if part.argv[:1] == (name,) and part.plain is not row.plain
    ]
    assert wrong == []


LOADS_NOTHING = (
    "cat a.txt", "ls -la", "head -3 a", "tail -n 5 a", "wc -l src/*.py", "grep -rn x src", "rg x", "echo hello", "pwd",
    "sort a | cut -c1-3 | uniq -c", "stat a", "file a", "du -sh .", "df -h", "date", "which python3", "true",
    "test -f a", "find . -name '*.py' | xargs wc -l", "cd src && ls", "x=1; echo $x",
    "for f in *.py; do head -1 $f; done", "[[ -f a ]] && cat a", "timeout 5 cat a", "tree -L 2", "sed -n 1,3p a",
    "awk '{print $1}' a", "jq . a.json",
)  # fmt: skip
MAY_LOAD = (
    "git status", "git log --oneline", "cargo --version", "rustc -vV", "flake8 --version", "poetry --version",
    "poetry show", "uv pip list", "uv python find", "pytest --version", "jest --version", "webpack --version",
    "lerna --version", "bazel --version", "bazelisk --version", "python --version", "node --version", "npm --version",
    "npm ls", "pip list", "ruff check .", "ruff --version", "mypy --version", "tsc --noEmit", "go version",
    "make --version", "ack x", "tokei", "shellcheck a.sh", "cloc .", "bat a.txt", "cat a | git grep x",
    "cd vendor && git status",
)  # fmt: skip


def test_a_line_is_plain_only_where_no_file_of_the_project_decides_what_runs() -> None:
    wrong = [line for line in LOADS_NOTHING if not all(part.plain for part in report(line).parts)]
    assert wrong == []
    assert [line for line in MAY_LOAD if all(part.plain for part in report(line).parts)] == []


def test_nothing_but_what_only_looks_is_plain() -> None:
    lines = (
        "cat a > b",
        "./cat a",
        "cat() { x; }; cat a",
        "PATH=. cat a",
        "sort -o a b",
        "sed -i s/a/b/ c",
        "$x",
        "xargs rm",
    )
    assert [part.argv for line in lines for part in report(line).parts if part.plain and part.standing] == []
    assert [line for line in lines if all(part.plain for part in report(line).parts)] == []
