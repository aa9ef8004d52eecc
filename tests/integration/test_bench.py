"""The bench reports what it measured, and no figure hides that something is broken."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.bench.__main__ import MEASUREMENTS, main
from tests.bench.figures import WIDTH, Row, amount, ratio, table
from tests.bench.world import FLOORS

_ECHO = FLOORS / "bare_echo.py"


def bench(agent: Path, only: str, *more: str) -> int:
    return main(["--quick", "--only", only, "--product", f"{sys.executable} {agent}", *more])


def test_an_agent_that_does_its_work_gets_rows_with_figures_floors_and_targets(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert bench(_ECHO, "script", "--json") == 0
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert [row["title"] for row in document["rows"]] == [
        "prompt without tools",
        "prompt with 1 call",
        "prompt with 10 calls",
        "1,000 chunks",
    ]
    assert all(row["value"] > 0 and row["floor"] > 0 and row["limit"] > 0 for row in document["rows"])
    assert document["broken"] == {}


@pytest.mark.parametrize(
    ("honest", "lie", "finding"),
    [
        ('plan.get("chunks", 1))]', 'plan.get("chunks", 1))][::-1]', "the streamed text"),
        ('plan.get("chunks", 1))', 'plan.get("chunks", 1) - (plan.get("chunks", 1) > 1))', "the streamed text"),
        ('range(plan.get("calls", 0))', 'range(min(9, plan.get("calls", 0)))', "reads through the client"),
        ('"stopReason": "end_turn"', '"stopReason": "refusal"', "the turn ended with"),
        ('result = {"stopReason": "end_turn"}', "sys.exit(3)", "ended early (exit 3)"),
    ],
    ids=["reordered chunks", "a lost chunk", "a call not made", "another end", "a process that dies"],
)
def test_an_agent_that_is_broken_fails_the_bench_and_is_named(
    honest: str, lie: str, finding: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = _ECHO.read_text("utf-8")
    assert source.count(honest) == 1
    agent = tmp_path / "liar.py"
    agent.write_text(source.replace(honest, lie))
    assert bench(agent, "script") == 1
    assert f"BROKEN script: {finding}" in capsys.readouterr().out


def test_a_figure_over_its_target_is_marked_and_fails_nothing() -> None:
    rows = [
        ratio("g", "slow", [30.0, 31.0, 29.0], ("floor", [10.0]), 1.3),
        amount("g", "beside the client's own time", [7.0], 5.0, ("client", [3.0]), over=True),
        amount("g", "without a target", [7.0]),
    ]
    assert [row.mark for row in rows] == ["over", "OK", ""]
    assert [row.result for row in rows] == [3.0, 4.0, 7.0]


def test_no_line_of_the_table_is_wider_than_a_terminal() -> None:
    row = Row("g", "x" * 39, 12345.6, "ms", 12.34, "x", 1.25, 1234.5, "the client's part")
    assert max(len(line) for line in table([row])) <= WIDTH


def test_every_measurement_has_a_name_for_only() -> None:
    names = "start first new script desk permission disclosure servers sessions model memory concurrent large"
    assert set(MEASUREMENTS) == set(names.split())
