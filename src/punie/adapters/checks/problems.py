"""The reports of linters and type checkers, each in the format that the real program has."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator
from typing import Any

from punie.domain.tools.checks import PROBLEM_LIMIT, Problem, ProblemReport

MESSAGE_LIMIT_CHARS = 400


_FINE = {"mypy": {0, 1, 2}}
"""Exit codes with which a report stands: 0 and 1, and mypy's 2, with which it reports a file that does not parse."""


class ReportError(ValueError):
    """The output is not a report of the kind that was asked for; the sentence says what is wrong with it."""


def read_problems(tool: str, text: str, exit_code: int) -> ProblemReport:
    """The report in a program's output. Raises `ReportError`, also where the exit code says that it broke."""
    if exit_code not in _FINE.get(tool, {0, 1}):
        raise ReportError(f"it ended with exit code {exit_code}, which means that it could not check")
    found = _READERS[tool](text)
    errors = sum(problem.severity == "error" for problem in found)
    if exit_code != 0 and not found:
        raise ReportError(f"it ended with exit code {exit_code}, but its report names no problem")
    return ProblemReport(
        tuple(found[:PROBLEM_LIMIT]), errors, len(found) - errors, len({problem.path for problem in found})
    )


def _ruff(text: str) -> list[Problem]:
    return [
        _problem(item["filename"], item["location"], item.get("code") or "syntax", item["message"], "error")
        for item in _list(text)
    ]


def _gitlab(text: str) -> list[Problem]:
    found: list[Problem] = []
    for item in _list(text):
        begin = item["location"]["positions"]["begin"]
        where = {"row": begin["line"], "column": begin["column"]}
        severity = "error" if item["severity"] in {"major", "critical", "blocker"} else "warning"
        code = item["check_name"]
        message = str(item["description"]).removeprefix(f"{code}: ")
        found.append(_problem(item["location"]["path"], where, code, message, severity))
    return found


def _pyright(text: str) -> list[Problem]:
    report = next((value for value in _documents(text, "{") if "generalDiagnostics" in value), None)
    if report is None:
        raise ReportError("there is no JSON report in its output")
    found: list[Problem] = []
    for item in report["generalDiagnostics"]:
        if item["severity"] == "information":
            continue
        start = item.get("range", {}).get("start", {"line": -1, "character": -1})
        where = {"row": start["line"] + 1, "column": start["character"] + 1}
        found.append(_problem(item["file"], where, item.get("rule") or "syntax", item["message"], item["severity"]))
    return found


def _mypy(text: str) -> list[Problem]:
    found: list[Problem] = []
    for line in filter(str.strip, text.splitlines()):
        try:
            item = json.loads(line)
        except ValueError:
            raise ReportError(f"a line of its output is no JSON: {line[:80]!r}") from None
        if item["severity"] == "error":
            where = {"row": max(item["line"], 0), "column": max(item["column"], 0) + 1}
            found.append(_problem(item["file"], where, item.get("code") or "syntax", item["message"], "error"))
    return found


_READERS: dict[str, Callable[[str], list[Problem]]] = {
    "ruff": _ruff,
    "ty": _gitlab,
    "basedpyright": _pyright,
    "pyright": _pyright,
    "mypy": _mypy,
}


def _list(text: str) -> list[Any]:
    for value in _documents(text, "["):
        if all(isinstance(item, dict) for item in value):
            return value
    raise ReportError("there is no JSON report in its output")


def _documents(text: str, opening: str) -> Iterator[Any]:
    """Every JSON value that begins at the start of a line: warnings may stand before and after the report."""
    decoder = json.JSONDecoder()
    at = 0 if text.startswith(opening) else text.find(f"\n{opening}") + 1
    while at or text.startswith(opening):
        with contextlib.suppress(ValueError, RecursionError):
            yield decoder.raw_decode(text, at)[0]
        at = text.find(f"\n{opening}", at) + 1
        if not at:
            return


def _problem(path: object, where: Any, code: object, message: object, severity: str) -> Problem:
    words = " ".join(str(message).split())
    return Problem(str(path), int(where["row"]), int(where["column"]), str(code), words[:MESSAGE_LIMIT_CHARS], severity)
