"""Reads pipeline files: a file makes a pipeline, or a list of everything that is wrong with the file."""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import count
from typing import cast

from attrs import define, evolve, field, frozen

from punie.application.pipelines.reading_steps import StepReader
from punie.application.tools.own_tools import OWN_NAMES
from punie.domain.pipelines.expressions import INPUTS, LOOP_NAMES, STEPS, Expression, Problem, Reference
from punie.domain.pipelines.pipeline import (
    DESCRIPTION_LIMIT,
    EXPRESSIONS_LIMIT,
    INPUTS_LIMIT,
    STEPS_LIMIT,
    Pipeline,
    Step,
    schema_of,
    stages,
)
from punie.domain.pipelines.templates import TemplateReader, expressions_in
from punie.domain.tools.tool import NAME_PATTERN
from punie.domain.values.json_value import JsonObject, NotJsonError, freeze_object
from punie.ports.tools import ArgumentValidator, Expressions


@define
class ReferenceCheck:
    """Checks the names in the expressions of one pipeline; `count` is the number of expressions after `problems`."""

    pipeline: Pipeline
    count: int = field(default=0, init=False)

    def problems(self) -> Iterator[Problem]:
        """A problem for each name that does not exist where an expression uses it."""
        before: set[str] = set()
        places = count()
        for stage in stages(self.pipeline.steps):
            for step in stage:
                yield from self._of_step(step, next(places), before)
            before |= {step.id for step in stage}
        yield from self._of(expressions_in(self.pipeline.output), "output", before, in_loop=False)

    def _of_step(self, step: Step, place: int, before: set[str]) -> Iterator[Problem]:
        where, loops = f"steps[{place}]", step.for_each is not None
        parts: tuple[tuple[str, Iterable[Expression], bool], ...] = (
            ("when", () if isinstance(step.when, bool) else (step.when,), loops),
            ("for_each", expressions_in(step.for_each), False),
            ("arguments", expressions_in(step.arguments), loops),
        )
        for key, expressions, in_loop in parts:
            yield from self._of(expressions, f"{where}.{key}", before, in_loop=in_loop)

    def _of(
        self, expressions: Iterable[Expression], where: str, before: set[str], *, in_loop: bool
    ) -> Iterator[Problem]:
        for expression in expressions:
            self.count += 1
            for reference in expression.references:
                problem = self._about(reference, before, in_loop=in_loop)
                if problem is not None:
                    yield Problem(f"${{{expression.text.strip()}}}: {problem}", where)

    def _about(self, reference: Reference, before: set[str], *, in_loop: bool) -> str | None:
        root, *rest = reference.path
        if root in LOOP_NAMES:
            return None if in_loop else f"{root} is there in steps with for_each only"
        if root == INPUTS:
            if not rest or rest[0] in self.pipeline.inputs:
                return None
            return f"there is no input {rest[0]!r}{_near(rest[0], self.pipeline.inputs)}"
        if root != STEPS or (rest and rest[0] in before):
            return None
        if not rest:
            return "name the step: steps.ID"
        if rest[0] in {step.id for step in self.pipeline.steps}:
            return f"the step {rest[0]} has not run by then"
        return f"there is no step {rest[0]!r}{_near(rest[0], before)}"


def _near(name: str, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(name, list(known), n=1)
    return f"; did you mean {close[0]}?" if close else ""


FILE_DEPTH_LIMIT = 50
_STEP = re.compile(r"steps\[(\d+)\]")
KEYS = ("name", "description", "inputs", "steps", "output")


@frozen
class ReadPipeline:
    """The result of reading a file; `pipeline` is None where a problem is more than a warning."""

    pipeline: Pipeline | None
    problems: tuple[Problem, ...]


@frozen
class PipelineReader:
    """Reads pipelines; lives as long as its caller needs it."""

    expressions: Expressions
    validator: ArgumentValidator

    def read(self, table: Mapping[str, object], *, stem: str, place: str = "project", file: str = "") -> ReadPipeline:
        """Read a file's table. `stem` is the name of the file, and of a pipeline that has no name."""
        problem = _shape_problem(table)
        if problem is not None:
            return ReadPipeline(None, (problem,))
        return _Reading(self, dict(table), stem).result(place, file)


def _shape_problem(table: Mapping[str, object]) -> Problem | None:
    """The reason why a file is not read at all: values nested too deep, or numbers that JSON does not have."""
    ahead: list[tuple[object, int]] = [(table, 0)]
    while ahead:
        value, depth = ahead.pop()
        if depth > FILE_DEPTH_LIMIT:
            return Problem(f"its values are nested deeper than {FILE_DEPTH_LIMIT} levels")
        if isinstance(value, float) and not math.isfinite(value):
            return Problem("inf and nan have no form in JSON")
        inner: Iterable[object] = ()
        if isinstance(value, Mapping):
            inner = cast("Mapping[str, object]", value).values()
        elif isinstance(value, (list, tuple)):
            inner = cast("list[object]", value)
        ahead.extend((one, depth + 1) for one in inner)
    return None


@define
class _Reading:
    """The reading of one file; lives until `result` returns."""

    reader: PipelineReader
    table: dict[str, object]
    stem: str
    problems: list[Problem] = field(factory=list[Problem])

    def result(self, place: str, file: str) -> ReadPipeline:
        for key in self.table:
            if key not in KEYS:
                self._wrong(f"there is no such key; there are {', '.join(KEYS)}", key)
        templates = TemplateReader(self.reader.expressions.parse, [])
        name, description = self._name(), self._description()
        inputs = self._inputs()
        steps = self._steps(templates)
        output = templates.read(self.table["output"], "output") if "output" in self.table else None
        pipeline = Pipeline(name, description, inputs, steps, output, place, file)
        references = ReferenceCheck(pipeline)
        self.problems += references.problems()
        if references.count > EXPRESSIONS_LIMIT:
            self._wrong(f"it has {references.count} expressions; at most {EXPRESSIONS_LIMIT} are read")
        named = tuple(self._with_step(problem) for problem in (*self.problems, *templates.problems))
        return ReadPipeline(None if any(not one.warning for one in named) else pipeline, named)

    def _name(self) -> str:
        name = self.table.get("name", self.stem)
        if not isinstance(name, str) or not NAME_PATTERN.fullmatch(name):
            self._wrong("expected 1 to 64 of A-Z a-z 0-9 _ -", "name")
            return "unnamed"
        if name in OWN_NAMES:
            self._wrong(f"{name} is the name of a tool of Punie's own; take another", "name")
        return name

    def _description(self) -> str:
        said = self.table.get("description")
        if not isinstance(said, str) or not said.strip() or len(said) > DESCRIPTION_LIMIT:
            self._wrong(f"expected 1 to {DESCRIPTION_LIMIT} characters that say what it does", "description")
            return ""
        return said.strip()

    def _inputs(self) -> Mapping[str, JsonObject]:
        said = self.table.get("inputs", {})
        if not isinstance(said, Mapping):
            self._wrong("expected tables: [inputs.NAME]", "inputs")
            return {}
        found = cast("Mapping[str, object]", said)
        if len(found) > INPUTS_LIMIT:
            self._wrong(f"there are {len(found)} inputs; at most {INPUTS_LIMIT} are read", "inputs")
        return {name: schema for name, value in found.items() if (schema := self._input(name, value)) is not None}

    def _input(self, name: str, value: object) -> JsonObject | None:
        where = f"inputs.{name}"
        if not name.isidentifier():
            self._wrong("expected a name of letters, digits and _, so that ${inputs.NAME} can name it", where)
        try:
            schema = freeze_object(value)
        except NotJsonError:
            self._wrong("expected a table with a JSON Schema, such as { type = 'string' }", where)
            return None
        alone = schema_of({name: schema})
        problem = self.reader.validator.schema_problem(alone)
        if problem is not None:
            self._wrong(f"this is no JSON Schema that can be used: {problem}", where)
        elif "default" in schema:
            fits = self.reader.validator.problems(alone, freeze_object({name: schema["default"]}))
            self.problems += [Problem(f"the default does not fit: {one}", where) for one in fits]
        return schema

    def _steps(self, templates: TemplateReader) -> tuple[Step, ...]:
        said = self.table.get("steps")
        if not isinstance(said, (list, tuple)) or not said:
            self._wrong("expected at least one [[steps]]", "steps")
            return ()
        listed = cast("list[object]", said)
        if len(listed) > STEPS_LIMIT:
            self._wrong(f"there are {len(listed)} steps; at most {STEPS_LIMIT} are read", "steps")
        reader = StepReader(templates, self.problems)
        return tuple(
            step for place, one in enumerate(listed[:STEPS_LIMIT]) if (step := reader.read(one, place)) is not None
        )

    def _with_step(self, problem: Problem) -> Problem:
        """The problem with the id of the step that its key names."""
        place = _STEP.match(problem.where)
        if place is None:
            return problem
        number = int(place[1])
        step = cast("list[object]", self.table["steps"])[number]
        said = cast("Mapping[str, object]", step).get("id") if isinstance(step, Mapping) else None
        return evolve(problem, step=said if isinstance(said, str) and said else str(number + 1))

    def _wrong(self, message: str, where: str = "") -> None:
        self.problems.append(Problem(message, where))


def recursions(pipelines: Iterable[Pipeline]) -> dict[str, tuple[str, ...]]:
    """The pipelines that call themselves, directly or through others, by name, with the names of one such cycle."""
    known = {pipeline.name: pipeline for pipeline in pipelines}
    found: dict[str, tuple[str, ...]] = {}
    for name in known:
        ahead: list[tuple[str, ...]] = [(name,)]
        seen: set[str] = set()
        while ahead and name not in found:
            way = ahead.pop()
            for tool in known[way[-1]].tools:
                if tool == name:
                    found[name] = (*way, name)
                    break
                if tool in known and tool not in seen:
                    seen.add(tool)
                    ahead.append((*way, tool))
    return found
