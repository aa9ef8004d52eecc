"""Every example runs as a program, as its first lines say."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.raw_client import clean_environment

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
PROGRAMS = sorted(EXAMPLES.glob("*.py"))


def run(example: Path, home: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(example)], env=clean_environment(home), cwd=home, capture_output=True, text=True,
        timeout=50, check=False, stdin=subprocess.DEVNULL,
    )  # fmt: skip


@pytest.mark.requirement("S0-45", "S0-64", "S0-70")
def test_the_discovery_example_shows_queries_and_the_toolset_that_was_built(tmp_path: Path) -> None:
    done = run(EXAMPLES / "09_dynamic_tool_discovery.py", tmp_path)
    assert done.returncode == 0, done.stderr
    assert "by_name('rename_symbol'):   edit, asks leave: True" in done.stdout
    assert "by_kind('search'):          find_problems, search_project, list_symbols" in done.stdout
    assert "by_category('navigation'):" in done.stdout
    assert "catalog: find_problems, " in done.stdout
    assert "default: read_file, write_file, run_command" in done.stdout
    assert "Toolset built in the session (tier catalog)" in done.stdout
    assert "  rename_symbol: old_name, new_name, path\n" in done.stdout
    assert "The agent used list_symbols and said: I found: shop.py:1: function total" in done.stdout


@pytest.mark.parametrize("example", PROGRAMS, ids=lambda path: path.stem)
def test_an_example_runs_to_its_end(example: Path, tmp_path: Path) -> None:
    done = run(example, tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout
