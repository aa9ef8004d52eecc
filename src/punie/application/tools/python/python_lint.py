"""The tool `python_lint`: the project's own linter."""

from __future__ import annotations

from punie.application.tools.python.python_check import PythonCheck, check_tool
from punie.domain.tools.checks import Check


class PythonLint(PythonCheck):
    """ruff."""

    DESCRIPTOR = check_tool("python_lint", "Lint Python code with ruff.")
    CHECK = Check.LINT
