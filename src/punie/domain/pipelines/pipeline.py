"""A pipeline: a tool composed of calls of other tools, as a file declares it."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from functools import cached_property

from attrs import field, frozen

from punie.domain.pipelines.expressions import Expression
from punie.domain.pipelines.templates import Fixed, Template
from punie.domain.tools.tool import ToolDescriptor, ToolKind, ToolSource
from punie.domain.values.json_value import EMPTY_OBJECT, JsonObject, JsonValue, freeze_object

FILE_LIMIT_BYTES = 65_536
INPUTS_LIMIT = 32
STEPS_LIMIT = 50
EXPRESSIONS_LIMIT = 500
DESCRIPTION_LIMIT = 1_024

ITEMS_LIMIT = 500
"""The most calls that one step with `for_each` makes."""

PARALLEL_LIMIT = 16
PARALLEL_DEFAULT = 8
OUTPUT_LIMIT = 1_048_576
"""Characters of a run's output as JSON."""

NO_ARGUMENTS = Fixed(EMPTY_OBJECT)


class OnError(StrEnum):
    """The course of a run after a step that does not succeed, also one that is denied."""

    STOP = "stop"
    CONTINUE = "continue"


class StepStatus(StrEnum):
    """The end of a step."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    DENIED = "denied"
    CANCELLED = "cancelled"
    SKIPPED = "skipped"
    NOT_RUN = "not_run"


@frozen
class Step:
    """One step: a call of a tool, or with `for_each` one call for each item, `at_once` of them at the same time.

    A step runs at the same time as its neighbours where all of them have `beside`. `fallback` is the step's value where
    it does not succeed and the run goes on.
    """

    id: str
    tool: str
    arguments: Template = NO_ARGUMENTS
    when: Expression | bool = True
    for_each: Template | None = None
    at_once: int = 1
    beside: bool = False
    on_error: OnError = OnError.STOP
    fallback: JsonValue = None


@frozen
class Pipeline:
    """One pipeline. `inputs` has a JSON Schema for each input; `place` is its source: `project`, `user`, `shipped`."""

    name: str
    description: str
    inputs: Mapping[str, JsonObject]
    steps: tuple[Step, ...]
    output: Template | None = None
    place: str = "project"
    file: str = field(default="", eq=False)

    @property
    def tools(self) -> tuple[str, ...]:
        """The tools that the pipeline calls, each once."""
        return tuple(dict.fromkeys(step.tool for step in self.steps))

    @cached_property
    def descriptor(self) -> ToolDescriptor:
        """The tool that a session offers."""
        return ToolDescriptor(
            self.name,
            ToolKind.OTHER,
            f"{self.description} (Runs {', '.join(self.tools)}.)",
            schema_of(self.inputs),
            source=ToolSource.PIPELINE,
            categories=("pipeline",),
        )


def schema_of(inputs: Mapping[str, JsonObject]) -> JsonObject:
    """The schema of a pipeline's arguments: an input without a default must be given."""
    required = [name for name, schema in inputs.items() if "default" not in schema]
    return freeze_object(
        {
            "type": "object",
            "properties": inputs,
            **({"required": required} if required else {}),
            "additionalProperties": False,
        }
    )


def with_defaults(inputs: Mapping[str, JsonObject], given: JsonObject) -> JsonObject:
    """The arguments of a call, with the defaults of those that are missing."""
    defaults = {name: schema["default"] for name, schema in inputs.items() if "default" in schema}
    return freeze_object({**defaults, **given})


def stages(steps: tuple[Step, ...]) -> tuple[tuple[Step, ...], ...]:
    """The steps in the order in which they run; those of one stage run at the same time."""
    found: list[list[Step]] = []
    for step in steps:
        if step.beside and found and found[-1][-1].beside:
            found[-1].append(step)
        else:
            found.append([step])
    return tuple(map(tuple, found))
