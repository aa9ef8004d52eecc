"""The check of one pipeline file, as `punie pipelines check` tells it; nothing is run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import cast

from punie.adapters.schema.argument_validator import JsonSchemaRsValidator
from punie.application.pipelines.problem_lines import at_line, lines_of
from punie.application.pipelines.reading import ReadPipeline, recursions
from punie.application.tools.own_tools import OWN_TOOLS
from punie.bootstrap.pipeline_files import PROJECT, new_reader, read_bytes, recursion_of, shelf_of
from punie.domain.pipelines.expressions import Problem
from punie.domain.pipelines.pipeline import Pipeline, Step
from punie.domain.pipelines.templates import Fixed, Table, Template
from punie.domain.servers.names import SEPARATOR
from punie.domain.tools.tool import ToolDescriptor
from punie.domain.values.json_value import EMPTY_OBJECT, JsonObject, JsonValue, freeze_object, object_in
from punie.mechanics.files import bytes_of
from punie.mechanics.nearest import did_you_mean

_OF_THE_WHOLE = frozenset({"allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas"})
"""Keys of a schema that are about all arguments together."""


def checked(own: str | None, cwd: str, path: Path, offered: Iterable[str] = ()) -> ReadPipeline:
    """Every problem of one file, checked together with the pipelines of `cwd`. Raises `OSError`.

    `own` is the folder of the user's pipelines, and `offered` names tools of an IDE. A pipeline that turns back to
    itself, or calls a tool that there is not or with literals that do not fit, is read, and has problems.
    """
    content = bytes_of(path)
    read = read_bytes(content, new_reader(), path.name, PROJECT, str(path))
    if read.pipeline is None:
        return read
    others = [one for one in shelf_of(own, cwd).pipelines if one.name != read.pipeline.name]
    turning = recursions((*others, read.pipeline)).get(read.pipeline.name)
    tools = {**OWN_TOOLS, **{one.name: one.descriptor for one in (*others, read.pipeline)}}
    problems = [*read.problems, *_of_steps(read.pipeline, tools, frozenset(offered))]
    if turning is not None:
        problems.append(recursion_of(read.pipeline, turning))
    lines = lines_of(content.decode("utf-8", "replace"), len(read.pipeline.steps))
    return ReadPipeline(None if turning else read.pipeline, tuple(at_line(one, lines) for one in problems))


def _of_steps(pipeline: Pipeline, tools: Mapping[str, ToolDescriptor], offered: frozenset[str]) -> Iterator[Problem]:
    validator = JsonSchemaRsValidator()
    for place, step in enumerate(pipeline.steps):
        tool = tools.get(step.tool)
        if tool is not None:
            for said in _misfits(step, tool, validator):
                yield Problem(f"{step.tool}: {said}", f"steps[{place}].arguments", step.id)
        elif step.tool not in offered:
            yield _unknown(step, place, tools)


def _unknown(step: Step, place: int, tools: Iterable[str]) -> Problem:
    where = f"steps[{place}].tool"
    if SEPARATOR in step.tool:
        said = f"no tool of Punie's own and no pipeline is named {step.tool}; a server must offer it"
        return Problem(said, where, step.id, warning=True)
    near = did_you_mean(step.tool, tools)
    said = f"no tool of Punie's own and no pipeline is named {step.tool}.{near} Say --offered NAME of a tool of the IDE"
    return Problem(said, where, step.id)


def _misfits(step: Step, tool: ToolDescriptor, validator: JsonSchemaRsValidator) -> Iterator[str]:
    """The arguments of a step that cannot fit, whatever its expressions come to, each with the reason."""
    given = dict(_entries(step.arguments))
    schema: dict[str, object] = dict(tool.parameters)
    properties = object_in(schema.get("properties"))
    # An argument that is computed may come to anything: any value is right.
    if not all(isinstance(template, Fixed) for template in given.values()):
        schema = {key: said for key, said in schema.items() if key not in _OF_THE_WHOLE}
    schema["properties"] = {
        name: said if isinstance(given.get(name, Fixed(None)), Fixed) else EMPTY_OBJECT
        for name, said in properties.items()
    }
    values: dict[str, JsonValue] = {
        name: template.value if isinstance(template, Fixed) else None for name, template in given.items()
    }
    yield from (f"there is no {name!r}.{did_you_mean(name, properties)}" for name in given if name not in properties)
    yield from validator.problems(freeze_object(schema), freeze_object(values))


def _entries(arguments: Template) -> Iterator[tuple[str, Template]]:
    match arguments:
        case Table(entries):
            yield from entries
        case Fixed(value):
            yield from ((name, Fixed(item)) for name, item in cast("JsonObject", value).items())
        case _:
            return
