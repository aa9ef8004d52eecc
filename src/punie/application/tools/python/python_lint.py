"""The tool `python_lint`: the project's own linter, which may also repair what it finds."""

from __future__ import annotations

from attrs import evolve, frozen

from punie.application.tools.built_in import BOOLEAN, optional
from punie.application.tools.python.python_check import PythonCheck, check_tool, named_paths
from punie.application.tools.session_tool import SessionTool
from punie.domain.errors import ToldToModel
from punie.domain.tools.checks import Check
from punie.domain.tools.roles import Column, Role
from punie.domain.tools.schema import flag_argument, text_argument
from punie.domain.tools.tool import ToolDescriptor
from punie.domain.values.json_value import JsonObject
from punie.domain.values.paths import is_inside


@frozen
class PythonLint(PythonCheck):
    """ruff."""

    CHECK = Check.LINT
    DESCRIPTOR = check_tool(CHECK, "Lint Python code with ruff.", {"select": optional("string"), "fix": BOOLEAN})

    def as_called(self, arguments: JsonObject) -> SessionTool:
        return FixingLint(self.checks, self.ledger) if flag_argument(arguments, "fix") else self

    def options(self, arguments: JsonObject) -> tuple[str, ...]:
        rules = text_argument(arguments, "select")
        return (f"--select={rules}",) if rules else ()


@frozen
class FixingLint(PythonLint):
    """ruff with --fix, as one call uses it: an edit of the files at its paths, or of all files.

    A ruff of the project itself may do anything, so that a call of it stays a command.
    """

    @property
    def descriptor(self) -> ToolDescriptor:
        roles = {**self.DESCRIPTOR.roles.by_name, "path": Role.PATH_WRITE}
        return evolve(self.DESCRIPTOR, roles=roles, column=Column.OTHER_COMMAND if self._is_own() else Column.EDIT)

    def _is_own(self) -> bool:
        try:
            command = self.checks.plan(self.CHECK, ()).command
        except ToldToModel:
            return True
        return is_inside(command.program, (command.cwd,))

    def paths(self, arguments: JsonObject) -> tuple[str, ...]:
        return named_paths(arguments) or (".",)

    def options(self, arguments: JsonObject) -> tuple[str, ...]:
        return ("--fix", *super().options(arguments))
