"""The base of python_lint, python_types and python_tests: the project's own checks, with their results as data.

A check runs code of the project, so that each call asks a person, with the exact command in the title.
"""

from __future__ import annotations

from typing import ClassVar

from attrs import asdict, evolve, frozen

from punie.application.tools.built_in import BuiltInTool, details, optional, schema
from punie.application.tools.session_tool import CallContext, PreparedCall
from punie.application.tools.terminals.terminal_tool import TerminalLedger, box_note, in_box
from punie.domain.errors import ToldToModel, ToolFailedError
from punie.domain.tools.catalog import Serving
from punie.domain.tools.checks import Check, PlannedCheck, ProblemReport, TestReport
from punie.domain.tools.metadata import Capability, Permission
from punie.domain.tools.roles import Column, Role
from punie.domain.tools.schema import text_argument
from punie.domain.tools.tool import ToolDescriptor, ToolKind, ToolResult
from punie.domain.values.display import one_line
from punie.domain.values.json_value import JsonObject
from punie.domain.values.paths import shown_path
from punie.domain.values.terminal import ExitStatus, TerminalOutput
from punie.ports.tools import CallProgress, PythonChecks


@frozen
class PythonCheck(BuiltInTool):
    """A tool that runs one kind of check, in this machine's terminals: a client's could cut a report."""

    checks: PythonChecks
    ledger: TerminalLedger
    CHECK: ClassVar[Check]
    SERVING = Serving.BY_MACHINE
    NEEDS = (PythonChecks, TerminalLedger)

    def title(self, arguments: JsonObject) -> str:
        try:
            return one_line(f"Running {self._plan(arguments).command.line}", limit=400)
        except ToldToModel:
            return f"Checking with {self.DESCRIPTOR.name}"

    def denial(self, arguments: JsonObject) -> str:
        try:
            return f"Permission denied to run {self._plan(arguments).command.line}"
        except ToldToModel:
            return super().denial(arguments)

    async def holds_boxes(self) -> bool:
        return await self.ledger.terminals.holds_boxes()

    async def prepare(self, arguments: JsonObject, context: CallContext) -> PreparedCall:
        planned = self._plan(arguments)
        planned = evolve(planned, command=context.confined(planned.command))
        box = planned.command.confinement.box

        async def effect(_progress: CallProgress) -> ToolResult:
            terminal_id = await self.ledger.start(planned.command, context.turn_id)
            try:
                ended = await self.ledger.ended(terminal_id, context.time_limit_s)
                output = await self.ledger.terminals.output(terminal_id)
            finally:
                await self.ledger.release_surely(terminal_id)
            if ended is None:
                return _timed_out(planned, output, context.time_limit_s)
            try:
                report = await self.checks.read(planned, output, ended)
            except ToolFailedError as error:
                return ToolResult.failure(f"{error}{box_note(box, ended)}", structured=in_box(box) or None)
            tests = isinstance(report, TestReport)
            text, found = _tests(planned, report, ended) if tests else _problems(planned, report, context.cwd)
            about = {"tool": planned.tool, "command": planned.command.line, **in_box(box)}
            return ToolResult.success(text + box_note(box, ended), structured=about | found)

        return PreparedCall(effect, watches_time=True)

    def _plan(self, arguments: JsonObject) -> PlannedCheck:
        return self.checks.plan(self.CHECK, text_argument(arguments, "path") or None)


def check_tool(name: str, description: str) -> ToolDescriptor:
    """The descriptor of a tool that runs one kind of check on a path, or on the project."""
    return ToolDescriptor(
        name,
        ToolKind.EXECUTE,
        description,
        schema({}, {"path": optional("string")}),
        categories=("check",),
        roles={"path": Role.PATH_READ},
        column=Column.OTHER_COMMAND,
        details=details(Capability.READ_FILES, Permission.READ | Permission.EXECUTE),
    )


def _timed_out(planned: PlannedCheck, output: TerminalOutput, limit_s: float) -> ToolResult:
    return ToolResult.failure(
        f"{output.text[-2_000:]}\n[stopped: {planned.tool} still ran after {limit_s:g} s. Name a smaller path, or "
        "raise the tool's time_s under [limits.tools] in the settings.]",
        code="timed_out",
        structured=in_box(planned.command.confinement.box) or None,
    )


def _problems(planned: PlannedCheck, report: ProblemReport, cwd: str) -> tuple[str, dict[str, object]]:
    shown = [{**asdict(problem), "path": shown_path(problem.path, cwd)} for problem in report.problems]
    lines = [
        f"{item['path']}:{item['line']}:{item['column']}: {item['severity']} {item['code']} {item['message']}"
        for item in shown
    ]
    counted = f"{report.errors} errors, {report.warnings} warnings in {report.files} files"
    head = f"{planned.tool}: {counted}" if report.total else f"{planned.tool}: no problems"
    more = [f"[only the first {len(shown)} are shown]"] if report.total > len(shown) else []
    return "\n".join([head, *lines, *more]), {
        "errors": report.errors,
        "warnings": report.warnings,
        "files": report.files,
        "problems": shown,
        "complete": report.total == len(shown),
    }


def _tests(planned: PlannedCheck, report: TestReport, ended: ExitStatus) -> tuple[str, dict[str, object]]:
    bad = report.failed + report.errors
    head = (
        f"{planned.tool}: {report.passed} passed, {report.failed} failed, {report.errors} errors, "
        f"{report.skipped} skipped in {report.time_s:.2f} s [{ended}]"
    )
    blocks = [f"{test.outcome.upper()} {test.test} (line {test.line})\n{test.message}" for test in report.problems]
    more = [f"[only the first {len(report.problems)} are shown]"] if bad > len(report.problems) else []
    return "\n\n".join([head, *blocks, *more]), {
        "exitCode": ended.exit_code,
        "passed": report.passed,
        "failed": report.failed,
        "errors": report.errors,
        "skipped": report.skipped,
        "timeS": report.time_s,
        "problems": [asdict(test) for test in report.problems],
        "complete": bad == len(report.problems),
    }
