"""The tool `python_types`: the project's own type checker."""

from __future__ import annotations

from punie.application.tools.python.python_check import PythonCheck, check_tool
from punie.domain.tools.checks import Check


class PythonTypes(PythonCheck):
    """ty, basedpyright, pyright or mypy: the first that the project has."""

    CHECK = Check.TYPES
    DESCRIPTOR = check_tool(CHECK, "Type-check Python code.")
