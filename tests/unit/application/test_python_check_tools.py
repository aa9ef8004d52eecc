"""python_lint, python_types and python_tests through the desk: asked, run to their end, told as data (M-02, M-22)."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from punie.application.tools.python.python_lint import PythonLint
from punie.application.tools.python.python_tests import PythonTests
from punie.application.tools.python.python_types import PythonTypes
from punie.application.tools.terminals.terminal_tool import TerminalLedger
from punie.domain.tools.checks import Check, FailedTest, Problem, ProblemReport, TestReport
from punie.domain.tools.execution import Limits
from punie.domain.tools.tool import ToolOutcome, ToolResult
from punie.domain.values.json_value import thaw
from tests.fakes.client import FakeClient
from tests.unit.application.desk_bench import LOG, DeskBench, call, desk_of
from tests.unit.application.doubles import MadeUpChecks

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("M-02", "M-22", "S2-88")]

TOOLS = {"python_lint": PythonLint, "python_types": PythonTypes, "python_tests": PythonTests}


async def bench_of(checks: MadeUpChecks, client: FakeClient, **how: Any) -> DeskBench:
    ledger = TerminalLedger(client, LOG)
    return await desk_of([kind(checks, ledger) for kind in TOOLS.values()], client=client, **how)


async def use(bench: DeskBench, name: str, **arguments: Any) -> ToolResult:
    with anyio.fail_after(5):
        return await bench.turn().call(call(name, arguments))


@pytest.mark.parametrize(
    ("name", "check"), [("python_lint", Check.LINT), ("python_types", Check.TYPES), ("python_tests", Check.TESTS)]
)
async def test_every_check_asks_with_its_exact_command_and_runs_it_without_a_shell(name: str, check: Check) -> None:
    client, checks = FakeClient(shows_terminals=False), MadeUpChecks()
    client.queue_permission_selected("allow_once")
    client.queue_terminal("checker", "report", 0)
    assert (await use(await bench_of(checks, client), name, path="my src")).succeeded
    (question,) = client.questions
    assert question.title == "Running checker 'my src'"
    assert [option.id for option in question.options] == ["allow_once", "reject"], "no grant goes beyond one run"
    (command,) = client.commands
    assert (command.program, command.args) == ("checker", ("my src",))
    ((planned, output, ended),) = checks.read_from
    assert (planned.check, output.text, ended.exit_code) == (check, "report", 0)
    assert client.terminals == {}


async def test_a_check_that_is_not_allowed_runs_nothing() -> None:
    client = FakeClient()
    client.queue_permission_selected("reject")
    result = await use(await bench_of(MadeUpChecks(), client), "python_tests")
    assert result.text.startswith("Permission denied to run checker")
    assert client.commands == []


@pytest.mark.requirement("R-16")
async def test_a_path_outside_is_refused_before_anybody_is_asked() -> None:
    client = FakeClient()
    result = await use(await bench_of(MadeUpChecks(), client), "python_lint", path="../else")
    assert (result.code, client.questions, client.commands) == ("outside_workspace", [], [])


async def test_where_no_program_is_installed_the_failure_says_so_and_nobody_is_asked() -> None:
    client = FakeClient()
    result = await use(await bench_of(MadeUpChecks(installed=False), client), "python_types")
    assert (result.outcome, "not installed" in result.text) == (ToolOutcome.FAILED, True)
    assert client.questions == []


async def test_problems_are_told_as_lines_and_as_data() -> None:
    problem = Problem("/project/src/a.py", 3, 5, "F401", "`os` imported but unused")
    client = FakeClient(shows_terminals=False)
    client.queue_permission_selected("allow_once")
    result = await use(await bench_of(MadeUpChecks(ProblemReport((problem,), 4, 1, 2)), client), "python_lint")
    assert result.text == (
        "checker: 4 errors, 1 warnings in 2 files\n"
        "src/a.py:3:5: error F401 `os` imported but unused\n[only the first 1 are shown]"
    )
    data: Any = thaw(result.structured)
    assert (data["errors"], data["warnings"], data["files"], data["complete"]) == (4, 1, 2, False)
    assert data["problems"] == [
        {"path": "src/a.py", "line": 3, "column": 5, "code": "F401", "message": "`os` imported but unused",
         "severity": "error"}
    ]  # fmt: skip


async def test_failed_tests_are_told_as_text_and_as_data() -> None:
    failed = FailedTest("tests/test_a.py::test_b", "tests/test_a.py", 7, "failed", "assert 1 == 2")
    client = FakeClient(shows_terminals=False)
    client.queue_permission_selected("allow_once")
    client.queue_terminal("checker", "report", 1)
    report = TestReport(5, 1, 0, 2, 0.5, (failed,))
    result = await use(await bench_of(MadeUpChecks(report), client), "python_tests")
    assert result.text == (
        "checker: 5 passed, 1 failed, 0 errors, 2 skipped in 0.50 s [exit code 1]\n\n"
        "FAILED tests/test_a.py::test_b (line 7)\nassert 1 == 2"
    )
    data: Any = thaw(result.structured)
    assert (data["passed"], data["failed"], data["skipped"], data["exitCode"]) == (5, 1, 2, 1)
    assert data["problems"][0]["line"] == 7


async def test_a_check_that_takes_too_long_is_stopped_and_released() -> None:
    client = FakeClient(shows_terminals=False)
    client.queue_permission_selected("allow_once")
    client.queue_terminal("checker", "so far", None)
    limits = Limits(by_tool={"python_tests": {"time_s": 0.05}})
    result = await use(await bench_of(MadeUpChecks(), client, limits=limits), "python_tests")
    assert (result.code, "still ran after 0.05 s" in result.text) == ("timed_out", True)
    assert client.terminals == {}
