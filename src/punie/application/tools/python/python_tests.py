"""The tool `python_tests`: the project's own tests."""

from __future__ import annotations

from punie.application.tools.built_in import STRING, optional
from punie.application.tools.python.python_check import PythonCheck, check_tool
from punie.domain.tools.checks import Check
from punie.domain.tools.schema import text_argument
from punie.domain.values.json_value import JsonObject


class PythonTests(PythonCheck):
    """pytest."""

    CHECK = Check.TESTS
    DESCRIPTOR = check_tool(
        CHECK,
        "Run pytest; path: files, folders, node ids.",
        {"k": optional("string"), "args": optional("array", items=STRING)},
    )

    def options(self, arguments: JsonObject) -> tuple[str, ...]:
        chosen = text_argument(arguments, "k")
        return (*(("-k", chosen) if chosen else ()), *super().options(arguments))
