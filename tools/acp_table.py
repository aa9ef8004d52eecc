"""The tables of docs/acp.md: what Punie does of ACP, and the cases of ACP's own TCK, with the tests that show them.

The first is from the rows of tests/requirements.toml, the second from tests/tck.toml.

`python tools/acp_table.py` prints the first; with `--write` both go into docs/acp.md. A test says whether they are up
to date.
"""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

from tools.requirements_report import ROOT, Requirement, load_manifest, worn

PAGE = Path("docs/acp.md")
PREFIX = "ACP "
_BETWEEN = re.compile(r"(?<=<!-- table -->\n).*(?=<!-- end of table -->)", re.DOTALL)
_OF_THE_KIT = re.compile(r"(?<=<!-- kit -->\n).*(?=<!-- end of kit -->)", re.DOTALL)
NO_TEST = ("not applicable:", "open:")


def table(root: Path = ROOT) -> str:
    """The table in Markdown, in the order of the file."""
    manifest, marks = load_manifest(root), worn(root)
    rows = (row for row in manifest.rows.values() if row.id.startswith(PREFIX))
    lines = (
        f"| `{row.id.removeprefix(PREFIX)}` | {_said(row)} | {_shown(sorted(marks.get(row.id, ())))} |" for row in rows
    )
    return "\n".join(("| ACP | Punie | shown by |", "|---|---|---|", *lines, ""))


def page(root: Path = ROOT) -> str:
    """The page as it should be."""
    text = (root / PAGE).read_text(encoding="utf-8")
    return _OF_THE_KIT.sub(lambda _: kit_table(root), _BETWEEN.sub(lambda _: table(root), text))


def cases(root: Path = ROOT) -> dict[tuple[int, str], str]:
    """The cases of the kit by version and id, in our words."""
    data = tomllib.loads((root / "tests/tck.toml").read_text(encoding="utf-8"))
    return {(int(version), row): says for version, rows in data.items() for row, says in rows.items()}


def made(root: Path = ROOT) -> dict[tuple[int, str], list[str]]:
    """The tests that make each case, as links."""
    found: dict[tuple[int, str], list[str]] = {}
    for path in sorted((root / "tests/e2e").glob("test_tck_*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.AsyncFunctionDef):
                link = f"[{node.name.removeprefix('test_').replace('_', ' ')}](../tests/e2e/{path.name})"
                for case in _worn(node):
                    found.setdefault(case, []).append(link)
    return found


def _worn(test: ast.AsyncFunctionDef) -> Iterator[tuple[int, str]]:
    for mark in test.decorator_list:
        if isinstance(mark, ast.Call) and isinstance(mark.func, ast.Name) and mark.func.id in {"v1", "v2"}:
            for arg in mark.args:
                if isinstance(arg, ast.Constant):
                    yield int(mark.func.id[1]), str(arg.value)


def kit_table(root: Path = ROOT) -> str:
    """The table of the kit's cases in Markdown, in the order of the file."""
    tests = made(root)
    lines = [
        f"| v{version} {row} | {says} | {_result(says)} | {', '.join(tests.get((version, row), ()))} |"
        for (version, row), says in cases(root).items()
    ]
    return "\n".join(("| TCK | asks | result | shown by |", "|---|---|---|---|", *lines, ""))


def _result(says: str) -> str:
    return says.partition(":")[0] if says.startswith((*NO_TEST, "recorded:")) else "passes"


def _said(row: Requirement) -> str:
    return row.says if row.not_applicable is None else f"not offered: {row.not_applicable}"


def _shown(files: list[str]) -> str:
    return ", ".join(f"[{Path(file).stem}](../tests/{file})" for file in files)


def main() -> int:
    """Print it, or write it."""
    if sys.argv[1:] == ["--write"]:
        (ROOT / PAGE).write_text(page(), encoding="utf-8")
    else:
        sys.stdout.write(table())
    return 0


if __name__ == "__main__":
    sys.exit(main())
