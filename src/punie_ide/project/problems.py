"""find_problems: what a real checker says, ruff where it is installed, else Python's own compiler."""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Iterator
from typing import Any

from attrs import frozen

from punie.api import ExitStatus, ToolFailedError
from punie_ide.project.arguments import argument
from punie_ide.project.files import ProjectFiles, absolute, files_below, shown
from punie_ide.project.testing import run
from punie_ide.tools import IdeTool, ToolAnswer, ToolContext

SHOWN_PROBLEMS = 50
FILES_PER_RUN = 200

# Compiles each file with every warning on, and prints what the compiler says in the shape of ruff's own JSON lines.
COMPILE = """
import json, sys, warnings
def say(path, row, code, message):
    print(json.dumps({"filename": path, "location": {"row": row, "column": 1}, "code": code, "message": message}))
for path in sys.argv[1:]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            with open(path, "rb") as file:
                compile(file.read(), path, "exec")
        except (SyntaxError, ValueError) as error:
            say(path, getattr(error, "lineno", None) or 1, "syntax", str(getattr(error, "msg", error)))
    for warning in caught:
        say(path, warning.lineno, "compiler", str(warning.message))
"""


@frozen
class Problem:
    """One finding: a path as the project writes it, a line from 1, the checker's code and words."""

    path: str
    line: int
    code: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.code} {self.message}"


async def _find_problems(arguments: dict[str, Any], context: ToolContext) -> ToolAnswer:
    path = argument(arguments, "path", ".")
    files = await files_below(context.cwd, path, (".py",))
    if importlib.util.find_spec("ruff") is not None:
        checker, (output, status) = "ruff", await _ruff(context, path)
        _require_ruff_ran(output, status)
    else:
        checker, (output, _) = "the Python compiler", await _compiler(context, files)
    problems = sorted(_problems(output, context.cwd), key=lambda problem: (problem.path, problem.line))
    return _answer(checker, path, problems)


async def _ruff(context: ToolContext, path: str) -> tuple[str, ExitStatus]:
    options = ("check", "--quiet", "--no-cache", "--output-format", "json-lines")
    return await run(context, sys.executable, "-m", "ruff", *options, "--", absolute(context.cwd, path))


async def _compiler(context: ToolContext, files: ProjectFiles) -> tuple[str, ExitStatus]:
    return await run(context, sys.executable, "-I", "-c", COMPILE, *files.paths[:FILES_PER_RUN])


def _require_ruff_ran(output: str, status: ExitStatus) -> None:
    """Ruff ends with 0 where it found nothing and with 1 where it found something."""
    if status.exit_code not in {0, 1}:
        raise ToolFailedError(f"ruff could not check this ({status}): {output.strip()[:500] or 'it said nothing'}")


def _problems(output: str, cwd: str) -> Iterator[Problem]:
    for line in output.splitlines():
        try:
            found = json.loads(line)
            where, row = found["filename"], int(found["location"]["row"])
            yield Problem(shown(cwd, where), row, str(found["code"] or "syntax"), str(found["message"]))
        except (ValueError, KeyError, TypeError):
            continue  # a warning of the checker's own, between the findings


def _answer(checker: str, path: str, problems: list[Problem]) -> ToolAnswer:
    if not problems:
        clean = f"{checker} finds no problem in {path}."
        return ToolAnswer(clean, {"checker": checker, "count": 0, "summary": f"{clean}\n", "problems": []})
    listed = "\n".join(str(problem) for problem in problems[:SHOWN_PROBLEMS])
    more = f"\n... and {len(problems) - SHOWN_PROBLEMS} more" if len(problems) > SHOWN_PROBLEMS else ""
    first = problems[0]
    summary = f"{checker} finds {len(problems)} problem{'s' * (len(problems) > 1)} in {path}:\n{listed}{more}"
    structured = {
        "checker": checker,
        "count": len(problems),
        "summary": f"{summary}\n",
        "first_path": first.path,
        "first_line": first.line,
        "problems": [
            {"path": problem.path, "line": problem.line, "code": problem.code, "message": problem.message}
            for problem in problems[:SHOWN_PROBLEMS]
        ],
    }
    return ToolAnswer(summary, structured)


FIND_PROBLEMS = IdeTool(
    "find_problems",
    _find_problems,
    "Problems that the project's checker finds in a file or folder: path, line, code and message of each.",
    "search",
    "Find problems",
    {
        "type": "object",
        "properties": {
            "path": {"type": "string", "description": "file or folder, relative to the project", "default": "."}
        },
        "additionalProperties": False,
    },
    categories=("inspection",),
    annotations={"readOnlyHint": True},
)
