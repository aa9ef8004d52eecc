"""The checks of one project, served by the programs that it has itself."""

from __future__ import annotations

import anyio.to_thread

from punie.adapters.checks.problems import ReportError, read_problems
from punie.adapters.checks.programs import plan_check
from punie.domain.errors import ToolFailedError
from punie.domain.tools.checks import Check, PlannedCheck, ProblemReport, TestReport
from punie.domain.values.terminal import ExitStatus, TerminalOutput
from punie.ports.tools import PythonChecks

TAIL_CHARS = 3_000
"""What is shown of an output that is no report: its end."""


class ProjectChecks(PythonChecks):
    """Finds ruff, a type checker and pytest for one directory and reads their reports; lives as long as the session."""

    def __init__(self, cwd: str) -> None:
        """`cwd` is absolute; nothing is looked for yet."""
        self._cwd = cwd

    def plan(self, check: Check, path: str | None) -> PlannedCheck:
        """See the port."""
        return plan_check(self._cwd, check, path)

    async def read(
        self, planned: PlannedCheck, output: TerminalOutput, ended: ExitStatus
    ) -> ProblemReport | TestReport:
        """See the port; parsing happens in a thread, for a report may be long."""
        try:
            return await anyio.to_thread.run_sync(_read, planned, output, ended)
        except ReportError as error:
            raise ToolFailedError(
                f"{planned.tool} gave no result that can be used: {error}. Its output ends with:\n"
                f"{output.text[-TAIL_CHARS:].strip() or '(nothing)'}\n[{ended}]"
            ) from None


def _read(planned: PlannedCheck, output: TerminalOutput, ended: ExitStatus) -> ProblemReport | TestReport:
    if ended.exit_code is None:
        raise ReportError(str(ended))
    if output.truncated and planned.check is not Check.TESTS:
        raise ReportError(f"it printed more than {planned.command.output_limit_bytes} bytes; name a smaller path")
    try:
        if planned.check is Check.TESTS:
            from punie.adapters.checks.junit import read_tests

            return read_tests(output.text, ended.exit_code)
        return read_problems(planned.tool, output.text, ended.exit_code)
    except (KeyError, TypeError, AttributeError, OverflowError) as error:
        raise ReportError(f"its report has another form than expected ({error!r})") from None
