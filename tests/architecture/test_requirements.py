"""tests/requirements.toml and the tests' marks agree, both ways."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.architecture.source_tree import ROOT, marks_here
from tools.requirements_report import Manifest, Requirement, load_manifest, marks_in, missing

MANIFEST = load_manifest()
ISSUES = range(2, 8)


def test_every_mark_names_a_known_requirement() -> None:
    assert {row_id: files for row_id, files in marks_here().items() if row_id not in MANIFEST.rows} == {}


def test_every_requirement_of_a_done_issue_has_a_test() -> None:
    assert [f"{row.id}: {row.says}" for row in missing(MANIFEST, marks_here(), MANIFEST.done)] == []


def test_rows_are_well_formed() -> None:
    for row in MANIFEST.rows.values():
        assert re.fullmatch(r"(S[0-4]|DC|A|M|R)-\d{2}|(DESIGN|INTERFACES)-\d+|ACP [$a-z_/]+", row.id)
        assert row.issue is None if row.id.startswith(("R-", "DESIGN", "INTERFACES")) else row.issue in ISSUES
        assert 2 <= len(row.says.split()) <= 12, row
        assert row.not_applicable is None or len(row.not_applicable.split()) > 2, "the reason is said"


def test_a_row_that_is_not_applicable_is_worn_by_no_test() -> None:
    assert [row.id for row in MANIFEST.rows.values() if row.not_applicable and row.id in marks_here()] == []


def test_a_missing_test_of_a_done_issue_is_found() -> None:
    rows = {
        "S0-01": Requirement("S0-01", "owed and worn", 2, None),
        "S0-02": Requirement("S0-02", "owed and missing", 2, None),
        "S0-03": Requirement("S0-03", "not applicable", 2, "because of this"),
        "S4-01": Requirement("S4-01", "of another issue", 5, None),
    }
    manifest = Manifest(rows, frozenset({2}))
    assert [row.id for row in missing(manifest, {"S0-01": {"a.py"}}, manifest.done)] == ["S0-02"]


def test_marks_of_tests_that_never_run_or_may_fail_are_no_proof() -> None:
    source = (
        "import pytest\n"
        "@pytest.mark.requirement('A-01')\n@pytest.mark.skip(reason='later')\ndef test_one(): ...\n"
        "@pytest.mark.xfail\n@pytest.mark.requirement('A-02')\nasync def test_two(): ...\n"
        "@pytest.mark.skipif(True, reason='another machine')\n@pytest.mark.requirement('A-03')\ndef test_three(): ...\n"
    )
    assert marks_in(source) == {"A-03"}, "what depends on the machine is judged by a whole run"


SMALL_SUITE = {
    "pyproject.toml": "[tool.pytest.ini_options]\ntestpaths = ['checks']\nmarkers = ['requirement(*ids): x']\n",
    "tests/requirements.toml": (
        "done = [2]\n[rows]\n"
        "S0-01 = { issue = 2, says = 'it works' }\nS0-02 = { issue = 2, says = 'it skips' }\n"
        "S0-03 = { issue = 3, says = 'not done' }\n"
    ),
    "checks/conftest.py": "from tests import proofs\ndef pytest_configure(config): proofs.register(config)\n",
    "checks/test_all.py": (
        "import pytest\n"
        "@pytest.mark.requirement('S0-01')\n@pytest.mark.parametrize('n', [1, 2])\n"
        "def test_works(n):\n    if n == 2: pytest.skip('no such thing here')\n"
        "@pytest.mark.requirement('S0-02', 'S0-03')\n"
        "def test_skips(request):\n"
        "    if not request.config.getoption('verbose'): pytest.skip('no bell on this machine')\n"
    ),
}


@pytest.mark.parametrize(
    ("options", "code"),
    [([], 1), (["-n", "1"], 1), (["-v"], 0), (["-k", "works"], 0), (["checks/test_all.py"], 0)],
    ids=["whole", "in other processes", "nothing skipped", "a part by name", "a part by file"],
)
def test_a_whole_run_fails_for_an_id_whose_every_test_was_skipped(
    tmp_path: Path, options: list[str], code: int
) -> None:
    for name, text in SMALL_SUITE.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, "utf-8")
    env = {**os.environ, "PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    command = [sys.executable, "-m", "pytest", "-p", "xdist", "--import-mode=importlib", *options]
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stdout
    said = [line for line in done.stdout.splitlines() if line.startswith("S0-")]
    assert said == (["S0-02: every test was skipped"] if code else [])
    assert ("no bell on this machine" in done.stdout) is bool(code)
    if code:
        assert json.loads((tmp_path / "build" / "proved.json").read_text("utf-8")) == ["S0-01"]


def test_marks_are_read_from_decorators_pytestmark_and_parameters() -> None:
    source = (
        "import pytest\n"
        "pytestmark = [pytest.mark.anyio, pytest.mark.requirement('A-01')]\n"
        "@pytest.mark.requirement('A-02', 'A-03')\n"
        "@pytest.mark.parametrize('x', [pytest.param(1, marks=pytest.mark.requirement('A-04'))])\n"
        "def test_it(x): ...\n"
    )
    assert marks_in(source) == {"A-01", "A-02", "A-03", "A-04"}
