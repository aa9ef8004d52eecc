"""tests/requirements.toml and the tests' marks agree, both ways."""

from __future__ import annotations

import re

from tools.requirements_report import Manifest, Requirement, load_manifest, marks_in, missing, worn

MANIFEST = load_manifest()
WORN = worn()
ISSUES = range(2, 8)


def test_every_mark_names_a_known_requirement() -> None:
    assert {row_id: files for row_id, files in WORN.items() if row_id not in MANIFEST.rows} == {}


def test_every_requirement_of_a_done_issue_has_a_test() -> None:
    assert [f"{row.id}: {row.says}" for row in missing(MANIFEST, WORN, MANIFEST.done)] == []


def test_rows_are_well_formed() -> None:
    for row in MANIFEST.rows.values():
        assert re.fullmatch(r"(S[0-4]|DC|A|M|R)-\d{2}|(DESIGN|INTERFACES)-\d+|ACP [$a-z_/]+", row.id)
        assert row.issue is None if row.id.startswith(("R-", "DESIGN", "INTERFACES")) else row.issue in ISSUES
        assert 2 <= len(row.says.split()) <= 12, row
        assert row.not_applicable is None or len(row.not_applicable.split()) > 2, "the reason is said"


def test_a_row_that_is_not_applicable_is_worn_by_no_test() -> None:
    assert [row.id for row in MANIFEST.rows.values() if row.not_applicable and row.id in WORN] == []


def test_a_missing_test_of_a_done_issue_is_found() -> None:
    rows = {
        "S0-01": Requirement("S0-01", "owed and worn", 2, None),
        "S0-02": Requirement("S0-02", "owed and missing", 2, None),
        "S0-03": Requirement("S0-03", "not applicable", 2, "because of this"),
        "S4-01": Requirement("S4-01", "of another issue", 5, None),
    }
    manifest = Manifest(rows, frozenset({2}))
    assert [row.id for row in missing(manifest, {"S0-01": {"a.py"}}, manifest.done)] == ["S0-02"]


def test_marks_are_read_from_decorators_pytestmark_and_parameters() -> None:
    source = (
        "import pytest\n"
        "pytestmark = [pytest.mark.anyio, pytest.mark.requirement('A-01')]\n"
        "@pytest.mark.requirement('A-02', 'A-03')\n"
        "@pytest.mark.parametrize('x', [pytest.param(1, marks=pytest.mark.requirement('A-04'))])\n"
        "def test_it(x): ...\n"
    )
    assert marks_in(source) == {"A-01", "A-02", "A-03", "A-04"}
