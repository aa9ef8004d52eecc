"""The table in docs/acp.md says all of ACP's stable part, and what the tests show."""

from __future__ import annotations

import pytest

from tests.e2e.official_schema import OfficialSchema, missing_reason
from tools.acp_table import NO_TEST, PAGE, PREFIX, cases, made, page
from tools.requirements_report import ROOT, load_manifest

ROWS = {row_id.removeprefix(PREFIX) for row_id in load_manifest().rows if row_id.startswith(PREFIX)}
UNSTABLE = {"session/fork", "mcp/message"}


def test_the_page_is_up_to_date() -> None:
    said = (ROOT / PAGE).read_text(encoding="utf-8")
    assert said == page(), "run: python -m tools.acp_table --write"


def test_every_case_of_the_kit_has_its_test() -> None:
    rows, tests = cases(), made()
    assert {case for case, says in rows.items() if not says.startswith(NO_TEST)} == set(tests)


@pytest.mark.requirement("A-12")
def test_every_stable_method_and_update_has_its_row() -> None:
    schema = OfficialSchema.load()
    if schema is None:
        pytest.skip(missing_reason() or "")
    definitions = schema.document["$defs"]
    methods = {body["x-method"] for body in definitions.values() if "x-method" in body}
    kinds = {branch["properties"]["sessionUpdate"].get("const") for branch in definitions["SessionUpdate"]["oneOf"]}
    assert methods | (kinds - {None}) | UNSTABLE == ROWS
