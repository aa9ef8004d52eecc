"""The lines of a pipeline file to which its problems belong."""

from __future__ import annotations

import re

from attrs import evolve

from punie.domain.pipelines.expressions import Problem

_HEADER = re.compile(r"\[\[\s*steps\s*\]\]")


def lines_of(text: str, steps: int) -> list[tuple[int, str]]:
    """The lines of a pipeline file with their numbers, for `at_line`.

    Empty where the headers do not match the steps, since a text of several lines may look like a header.
    """
    lines = list(enumerate(text.splitlines(), 1))
    headers = sum(_HEADER.match(line.strip()) is not None for _, line in lines)
    return lines if headers == steps else []


def at_line(problem: Problem, lines: list[tuple[int, str]]) -> Problem:
    """The problem with its line: the line of its key in its step, else the first line of the step."""
    if problem.line_1based is not None or not problem.where or not lines:
        return problem
    head, _, rest = problem.where.partition("[")
    if head == "steps" and rest:
        number, keys = int(rest.partition("]")[0]), rest.partition("].")[2]
        starts = [line for line, text in lines if _HEADER.match(text.strip())]
        begin = starts[number]
        end = starts[number + 1] if number + 1 < len(starts) else len(lines) + 1
        return evolve(problem, line_1based=_line_of_key(lines, begin, end, keys) or begin)
    return evolve(problem, line_1based=_line_of_key(lines, 1, len(lines) + 1, problem.where))


def _line_of_key(lines: list[tuple[int, str]], begin: int, end: int, dotted: str) -> int | None:
    """The line in that range with the last key of a dotted name, or else with an earlier one."""
    for key in reversed(re.findall(r"[^.\[\]]+", dotted)):
        written = re.compile(rf"(?:^\s*|[{{,.\[]\s*)[\"']?{re.escape(key)}[\"']?\s*[=.\]]")
        for number, text in lines[begin - 1 : end - 1]:
            if written.search(text):
                return number
    return None
