"""Pipeline files: the user's, the project's, and those that come with Punie."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from importlib.resources import files
from pathlib import Path
from typing import cast

from attrs import evolve, frozen

from punie.adapters.expressions.python_expressions import PythonExpressions
from punie.adapters.schema.argument_validator import JsonSchemaRsValidator
from punie.application.pipelines.problem_lines import at_line, lines_of
from punie.application.pipelines.reading import PipelineReader, ReadPipeline, recursions
from punie.bootstrap.settings.files import IN_PROJECT
from punie.domain.pipelines.expressions import Problem
from punie.domain.pipelines.pipeline import FILE_LIMIT_BYTES, Pipeline
from punie.domain.values.display import one_line
from punie.mechanics.files import names_in, opened_folder, read_file
from punie.mechanics.toml_reading import parse_toml

ENDING = ".toml"
PROJECT, USER, SHIPPED = "project", "user", "shipped"
FILES_LIMIT = 50
"""Files that one folder may bring."""

PROBLEMS_LIMIT = 100
"""Problems of one file that are reported, the first ones; each is looked for among all lines."""

_NAMES_LIMIT = 1_000


@frozen
class PipelineFile:
    """One file as it was read: the pipeline, or the problems."""

    path: str
    place: str
    read: ReadPipeline


@frozen
class Shelf:
    """All pipelines for a directory. Of several with one name, the first of user, project and shipped is used."""

    pipelines: tuple[Pipeline, ...]
    files: tuple[PipelineFile, ...]

    def problems(self) -> Iterator[str]:
        """A line about each file that is left out."""
        for file in self.files:
            wrong = [problem for problem in file.read.problems if not problem.warning]
            if wrong:
                more = f" (and {len(wrong) - 1} more)" if len(wrong) > 1 else ""
                yield f"{file.path} is left out: {one_line(wrong[0].sentence(), 300)}{more}"


def shelf_of(own: str | None, cwd: str) -> Shelf:
    """Every pipeline for a session in `cwd`; `own` is the folder of the user's pipelines. Blocks.

    Never raises for the content of a file.
    """
    reader = new_reader()
    return _shelf([*_written(own, cwd, reader), *_shipped(reader)])


def offered_shelf(own: str | None, cwd: str, shipped: tuple[str, ...]) -> Shelf:
    """The pipelines for a model: the user's, the project's, shipped ones of these names, and those that they call."""
    whole = shelf_of(own, cwd)
    known = {pipeline.name: pipeline for pipeline in whole.pipelines}
    named = {one.name for one in known.values() for pattern in shipped if fnmatchcase(one.name, pattern)}
    ahead = [one for one in known.values() if one.place != SHIPPED or one.name in named]
    wanted: set[str] = set()
    while ahead:
        pipeline = ahead.pop()
        wanted.add(pipeline.name)
        ahead += [known[tool] for tool in pipeline.tools if tool in known and tool not in wanted]
    return Shelf(tuple(one for one in whole.pipelines if one.name in wanted), whole.files)


def new_reader() -> PipelineReader:
    """A reader of pipeline files."""
    return PipelineReader(PythonExpressions(), JsonSchemaRsValidator())


def _written(own: str | None, cwd: str, reader: PipelineReader) -> Iterator[PipelineFile]:
    # A project may add a pipeline or replace a shipped one, and never replaces one of the user's.
    if own is not None:
        yield from _in_folder(Path(own), USER, reader, follow=True)
    yield from _in_folder(Path(os.path.realpath(cwd)).joinpath(*IN_PROJECT), PROJECT, reader, follow=False)


def _shelf(found: list[PipelineFile]) -> Shelf:
    whole: dict[str, Pipeline] = {}
    for file in found:
        if file.read.pipeline is not None:
            whole.setdefault(file.read.pipeline.name, file.read.pipeline)
    turning = recursions(whole.values())
    kept = tuple(pipeline for name, pipeline in whole.items() if name not in turning)
    return Shelf(kept, tuple(_with_recursion(file, turning) for file in found))


def log_problems(shelf: Shelf, log: logging.Logger) -> tuple[Pipeline, ...]:
    """The pipelines, after the problems of the others were logged."""
    for line in shelf.problems():
        log.warning("%s", line)
    return shelf.pipelines


def read_bytes(content: bytes, reader: PipelineReader, name: str, place: str, path: str) -> ReadPipeline:
    """The pipeline of a file with that content, or its problems."""
    if len(content) > FILE_LIMIT_BYTES:
        return ReadPipeline(None, (Problem(f"the file is larger than {FILE_LIMIT_BYTES} bytes"),))
    try:
        text = content.decode("utf-8")
        table = parse_toml(text)
    except (ValueError, RecursionError) as error:
        line = re.search(r"line (\d+)", str(error))
        where = int(line[1]) if line else None
        return ReadPipeline(None, (Problem(f"it is not valid TOML: {error}", line_1based=where),))
    read = reader.read(table, stem=name.removesuffix(ENDING), place=place, file=path)
    steps = table.get("steps")
    lines = lines_of(text, len(cast("list[object]", steps)) if isinstance(steps, list) else 0)
    return ReadPipeline(read.pipeline, tuple(at_line(problem, lines) for problem in read.problems[:PROBLEMS_LIMIT]))


def _in_folder(folder: Path, place: str, reader: PipelineReader, *, follow: bool) -> Iterator[PipelineFile]:
    path = os.path.realpath(folder) if follow else str(folder)
    try:
        with opened_folder(path) as opened:
            names = sorted(name for name in names_in(opened, _NAMES_LIMIT) if name.endswith(ENDING))
            contents = [(name, _content(opened, name)) for name in names[:FILES_LIMIT]]
    except (OSError, NotImplementedError):  # the folder is missing, or its path in a project has a link
        return
    for name, content in contents:
        file = str(Path(path) / name)
        if content is None:
            yield PipelineFile(file, place, ReadPipeline(None, (Problem("it is no regular file that can be read"),)))
        else:
            yield PipelineFile(file, place, read_bytes(content, reader, name, place, file))


def _content(folder: int, name: str) -> bytes | None:
    try:
        return read_file(folder, name, FILE_LIMIT_BYTES)
    except OSError:
        return None


def _shipped(reader: PipelineReader) -> Iterator[PipelineFile]:
    folder = files("punie.bootstrap") / "pipelines"
    for entry in sorted(folder.iterdir(), key=lambda one: one.name):
        if entry.name.endswith(ENDING):
            read = read_bytes(entry.read_bytes(), reader, entry.name, SHIPPED, entry.name)
            yield PipelineFile(entry.name, SHIPPED, read)


def _with_recursion(file: PipelineFile, turning: Mapping[str, tuple[str, ...]]) -> PipelineFile:
    pipeline = file.read.pipeline
    if pipeline is None or pipeline.name not in turning:
        return file
    problems = (*file.read.problems, recursion_of(pipeline, turning[pipeline.name]))
    return evolve(file, read=ReadPipeline(None, problems))


def recursion_of(pipeline: Pipeline, way: tuple[str, ...]) -> Problem:
    """The problem of a pipeline that calls itself on that way."""
    place = next(place for place, step in enumerate(pipeline.steps) if step.tool == way[1])
    return Problem(f"it comes back to itself: {' -> '.join(way)}", f"steps[{place}].tool", pipeline.steps[place].id)
