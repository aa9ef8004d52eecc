"""Which requirements lack a test: `python tools/requirements_report.py [ISSUE ...]` prints those rows, of some or all.

The rows are tests/requirements.toml; tests say what they show with `@pytest.mark.requirement("S0-19", ...)`. Marks are
read from the syntax tree, so nothing is imported; those of tests that are always skipped, or expected to fail, do not
count. Which other tests are skipped depends on the machine: after a whole run of the suite (`make test`), which fails
for an id whose every test was skipped (tests/proofs.py), this also lists what that run did not prove.
"""

from __future__ import annotations

import ast
import json
import os
import sys
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PROVED = Path("build") / "proved.json"


@dataclass(frozen=True)
class Requirement:
    """One row of tests/requirements.toml; `issue` is None for a ruling or a paper's section, owed no test."""

    id: str
    says: str
    issue: int | None
    not_applicable: str | None

    @property
    def is_owed(self) -> bool:
        """True where a test must show it."""
        return self.issue is not None and self.not_applicable is None


@dataclass(frozen=True)
class Manifest:
    """The whole file: all rows by id, and the issues that are done."""

    rows: dict[str, Requirement]
    done: frozenset[int]


def load_manifest(root: Path = ROOT) -> Manifest:
    """Read tests/requirements.toml; a repeated id is a ValueError."""
    data: dict[str, Any] = tomllib.loads((root / "tests" / "requirements.toml").read_text(encoding="utf-8"))
    rows: dict[str, Requirement] = {}
    done: list[int] = data.pop("done")
    sections: dict[str, dict[str, dict[str, Any]]] = data
    for section in sections.values():
        for row_id, row in section.items():
            if row_id in rows:
                raise ValueError(f"tests/requirements.toml lists {row_id} twice")
            rows[row_id] = Requirement(row_id, row["says"], row.get("issue"), row.get("not_applicable"))
    return Manifest(rows, frozenset(done))


NO_PROOF = {"skip", "xfail"}
"""Marks of tests that prove nothing on any machine."""


def marks_in(source: str) -> set[str]:
    """The ids worn anywhere in one module, as a decorator, in pytestmark or in a parameter's marks.

    Those of a test that is always skipped or expected to fail are left out.
    """
    return set(_marks(ast.parse(source))) if ".requirement(" in source else set()


def _marks(node: ast.AST) -> Iterator[str]:
    inner = ast.iter_child_nodes(node)
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):  # whose body wears nothing
        if any(map(_proves_nothing, node.decorator_list)):
            return
        inner = iter(node.decorator_list)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "requirement":
        yield from (arg.value for arg in node.args if isinstance(arg, ast.Constant) and isinstance(arg.value, str))
    for child in inner:
        yield from _marks(child)


def _proves_nothing(decorator: ast.expr) -> bool:
    mark = decorator.func if isinstance(decorator, ast.Call) else decorator
    return isinstance(mark, ast.Attribute) and mark.attr in NO_PROOF and ast.unparse(mark.value).endswith("mark")


def write_proved(ids: Iterable[str], root: Path = ROOT) -> None:
    """Keep what a whole run of the suite proved, for this report."""
    path = root / PROVED
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(sorted(ids)), encoding="utf-8")


def read_proved(root: Path = ROOT) -> set[str] | None:
    """What the last whole run proved; None where there was none in this tree."""
    path = root / PROVED
    return set(json.loads(path.read_text(encoding="utf-8"))) if path.exists() else None


@cache
def worn(root: Path) -> dict[str, set[str]]:
    """Each id worn under tests/, with the files (relative to tests/) that wear it; read once a process."""
    tests = root / "tests"
    result: dict[str, set[str]] = {}
    for folder, below, names in os.walk(tests):
        below[:] = [name for name in below if name not in {"node_modules", ".venv", "__pycache__"}]
        for path in (Path(folder, name) for name in names if name.endswith(".py")):
            for row_id in marks_in(path.read_text(encoding="utf-8")):
                result.setdefault(row_id, set()).add(path.relative_to(tests).as_posix())
    return result


def missing(manifest: Manifest, marks: dict[str, set[str]], issues: frozenset[int]) -> list[Requirement]:
    """Rows of these issues that are owed a test and have none."""
    return [row for row in manifest.rows.values() if row.is_owed and row.issue in issues and row.id not in marks]


def main(arguments: list[str]) -> int:
    """Print what lacks a test; exit code 1 when something of a done issue does."""
    manifest, marks = load_manifest(), worn(ROOT)
    every = frozenset(row.issue for row in manifest.rows.values() if row.issue is not None)
    issues = frozenset(int(argument) for argument in arguments) or every
    for row in missing(manifest, marks, issues):
        print(f"{row.id:6} issue {row.issue}: {row.says}")
    owed = [row for row in manifest.rows.values() if row.is_owed and row.issue in issues]
    print(f"{sum(row.id in marks for row in owed)} of {len(owed)} requirements of {sorted(issues)} have a test")
    proved = read_proved()
    unproved = [] if proved is None else [row.id for row in owed if row.id in marks and row.id not in proved]
    if unproved:
        print(f"not proved by the last whole run on this machine, every test skipped: {' '.join(unproved)}")
    return 1 if missing(manifest, marks, issues & manifest.done) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
