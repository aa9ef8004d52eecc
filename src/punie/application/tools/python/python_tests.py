"""The tool `python_tests`: the project's own tests."""

from __future__ import annotations

from punie.application.tools.python.python_check import PythonCheck, check_tool
from punie.domain.tools.checks import Check


class PythonTests(PythonCheck):
    """pytest."""

    DESCRIPTOR = check_tool("python_tests", "Run tests with pytest.")
    CHECK = Check.TESTS
