"""Whether what the expressions of a pipeline name is there, where they name it."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator

from attrs import define, field

from punie.domain.pipelines.expressions import INPUTS, LOOP_NAMES, STEPS, Expression, Reference
from punie.domain.pipelines.pipeline import Pipeline, Step, stages
from punie.domain.pipelines.problems import Problem
from punie.domain.pipelines.templates import Template, expressions_in


@define
class ReferenceCheck:
    """Looks through one pipeline; `count` is how many expressions it has, once that was done."""

    pipeline: Pipeline
    count: int = field(default=0, init=False)

    def problems(self) -> list[Problem]:
        """A sentence a name that is not there."""
        found: list[Problem] = []
        before: set[str] = set()
        places = iter(range(len(self.pipeline.steps)))
        for stage in stages(self.pipeline.steps):
            for step in stage:
                found += self._of_step(step, next(places), before)
            before |= {step.id for step in stage}
        if self.pipeline.output is not None:
            found += self._of(expressions_in(self.pipeline.output), "output", before, in_loop=False)
        return found

    def _of_step(self, step: Step, place: int, before: set[str]) -> Iterator[Problem]:
        where, loops = f"steps[{place}]", step.for_each is not None
        parts: tuple[tuple[str, Iterable[Expression], bool], ...] = (
            ("when", () if isinstance(step.when, bool) else (step.when,), loops),
            ("for_each", _all(step.for_each), False),
            ("arguments", _all(step.arguments), loops),
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


def _all(template: Template | None) -> Iterable[Expression]:
    return () if template is None else expressions_in(template)


def _near(name: str, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(name, list(known), n=1)
    return f"; did you mean {close[0]}?" if close else ""
