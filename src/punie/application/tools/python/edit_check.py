"""The effect of an edit on the linter's findings in the edited files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import anyio
from attrs import evolve, frozen

from punie.application.tools.terminals.terminal_tool import TerminalLedger
from punie.domain.errors import ToldToModel
from punie.domain.tools.checks import Check, PlannedCheck, ProblemReport
from punie.domain.values.display import one_line
from punie.domain.values.paths import shown_path
from punie.domain.values.terminal import Box, Confinement
from punie.ports.tools import PythonChecks

CHECK_LIMIT_S = 1.0
"""How long one look may take; an edit takes two."""


@frozen
class EditCheck:
    """Looks at single Python files with ruff in the box for commands that only look; lives as long as the session.

    A ruff of the project itself is passed over, since no person is asked, and none is run where no box holds it.
    """

    checks: PythonChecks
    ledger: TerminalLedger

    async def __call__(self, paths: Sequence[str], turn_id: str) -> Counter[str] | None:
        """The findings in the files of these absolute paths; None where they cannot be had."""
        python = [path for path in paths if path.endswith((".py", ".pyi"))]
        if not python:
            return Counter()
        try:
            planned = self.checks.plan(Check.LINT, python, ("--no-cache",), own=False)
            if not await self.ledger.terminals.holds_boxes():
                return None
            with anyio.move_on_after(CHECK_LIMIT_S):
                return await self._found(planned, turn_id)
        except ToldToModel:
            return None
        return None

    async def _found(self, planned: PlannedCheck, turn_id: str) -> Counter[str] | None:
        command = evolve(planned.command, confinement=Confinement(Box.LOOK))
        terminal_id = await self.ledger.start(command, turn_id)
        try:
            ended = await self.ledger.terminals.wait(terminal_id)
            output = await self.ledger.terminals.output(terminal_id)
        finally:
            await self.ledger.release_surely(terminal_id)
        report = await self.checks.read(planned, output, ended)
        if not isinstance(report, ProblemReport) or report.total > len(report.problems):
            return None
        cwd = planned.command.cwd
        return Counter(one_line(f"{shown_path(one.path, cwd)}: {one.code} {one.message}") for one in report.problems)
