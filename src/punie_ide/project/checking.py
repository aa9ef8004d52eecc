"""Tools of the reference IDE that run a program: `run_tests` (unittest) and `find_problems` (ruff or compiler)."""

from __future__ import annotations

import importlib.util
import json
import re
import sys
from collections.abc import Iterator
from typing import Any

import anyio
from attrs import frozen

from punie.api import Command, ExitStatus, ToolFailedError
from punie_ide.project.files import ProjectFiles, absolute, argument, files_below, shown, terminals_of
from punie_ide.tools import IdeTool, ToolAnswer, ToolContext

RUN_LIMIT_S = 120.0


async def run(context: ToolContext, program: str, *args: str) -> tuple[str, ExitStatus]:
    """The output and exit status of a program. Raises `ToolFailedError`, as after `RUN_LIMIT_S`."""
    terminals = terminals_of(context)
    terminal_id = await terminals.create(Command.of(program, args, context.cwd))
    try:
        with anyio.move_on_after(RUN_LIMIT_S):
            status = await terminals.wait(terminal_id)
            return (await terminals.output(terminal_id)).text, status
        raise ToolFailedError(f"{program} was stopped: it took longer than {RUN_LIMIT_S:g} s.")
    finally:
        with anyio.CancelScope(shield=True):
            await terminals.release(terminal_id)


_RAN = re.compile(r"^Ran (\d+) tests?", re.MULTILINE)
_NO_TESTS = 5
"""The exit code of unittest (since Python 3.12) without any test."""


async def _run_tests(arguments: dict[str, Any], context: ToolContext) -> ToolAnswer:
    folder = absolute(context.cwd, argument(arguments, "path", "."))
    await files_below(context.cwd, folder, (".py",))
    top = ("-t", context.cwd) if await anyio.Path(folder, "__init__.py").exists() else ()
    output, status = await run(context, sys.executable, "-m", "unittest", "discover", "--verbose", "-s", folder, *top)
    ran = _RAN.search(output)
    count = int(ran.group(1)) if ran else 0
    passed = status.exit_code == 0 and count > 0
    verdict = "no tests were found" if count == 0 and status.exit_code in {0, _NO_TESTS} else str(status)
    summary = f"{count} tests passed." if passed else f"The tests did not pass ({verdict}):\n{output.strip()[-4000:]}"
    structured = {"passed": passed, "count": count, "exit_code": status.exit_code}
    return ToolAnswer(summary, structured, is_error=not passed)


RUN_TESTS = IdeTool(
    "run_tests",
    _run_tests,
    "Run the unittest tests below a folder: how many ran, whether they passed, and the output of those that failed.",
    "execute",
    "Run tests",
    {
        "type": "object",
        "properties": {"path": {"type": "string", "description": "folder, relative to the project", "default": "."}},
        "additionalProperties": False,
    },
    requires_permission=True,
    categories=("testing",),
)


SHOWN_PROBLEMS = 50
FILES_PER_RUN = 200

# Compiles each file with every warning on, and prints the compiler's messages in the form of ruff's JSON lines.
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
    """One finding: a path relative to the project, a line from 1, the checker's code and message."""

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
    """Raise `ToolFailedError` for an exit code other than 0 (no findings) and 1 (findings)."""
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
