"""The project's own linter, type checker and test runner."""

from __future__ import annotations

from abc import abstractmethod
from typing import Protocol, runtime_checkable

from punie.domain.checks import Check, PlannedCheck, ProblemReport, TestReport
from punie.domain.terminal import ExitStatus, TerminalOutput


@runtime_checkable
class PythonChecks(Protocol):
    """Knows which program serves a check and how to read what it prints; lives as long as the session.

    It runs nothing: the command goes through the session's terminals, after leave was given.
    """

    @abstractmethod
    def plan(self, check: Check, path: str | None) -> PlannedCheck:
        """The command that checks `path` (relative to the session's directory, or the whole project).

        A few looks at the disk, no more. Raises `ToolFailedError` where no program for it is installed.
        """
        ...

    @abstractmethod
    async def read(
        self, planned: PlannedCheck, output: TerminalOutput, ended: ExitStatus
    ) -> ProblemReport | TestReport:
        """What the program found. Raises `ToolFailedError` where it broke or cannot be understood."""
        ...
