"""The package by itself: its README's example, and nothing of Punie in the package or in its tests."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).parent
PACKAGE = TESTS.parents[1] / "src" / "shellsight"


def imported(path: Path) -> set[str]:
    """The first names of all modules that a file imports, wherever in it."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add((node.module or "").split(".")[0])
    return found


def test_neither_the_package_nor_its_tests_import_punie() -> None:
    files = [*PACKAGE.rglob("*.py"), *TESTS.rglob("*.py")]
    assert [path.name for path in files if any(name.startswith("punie") for name in imported(path))] == []


def test_the_example_of_the_readme_says_what_it_shows_with_nothing_else_of_ours_on_the_path(tmp_path: Path) -> None:
    shutil.copytree(PACKAGE, tmp_path / "shellsight", ignore=shutil.ignore_patterns("__pycache__"))
    readme = (PACKAGE / "README.md").read_text("utf-8")
    code, shown = re.findall(r"```(?:python|text)\n(.*?)```", readme, re.DOTALL)[:2]
    alone = f"import sys\nsys.path.insert(0, {str(tmp_path)!r})\n{code}\nassert 'punie' not in sys.modules\n"
    alone += f"import shellsight\nassert shellsight.__file__.startswith({str(tmp_path)!r})\n"
    done = subprocess.run([sys.executable, "-c", alone], capture_output=True, text=True, check=False, timeout=60)
    assert done.stderr == ""
    assert done.stdout == shown
