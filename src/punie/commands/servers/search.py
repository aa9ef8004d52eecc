"""`punie servers search`: what a registry knows, and the words for what adding a described server comes to."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import cast

import anyio
from attrs import define, frozen

from punie.adapters.console.output import Pipe
from punie.adapters.registry import FetchError, RegistryClient
from punie.bootstrap.settings.files import user_settings_file
from punie.bootstrap.settings.keys import REGISTRY
from punie.bootstrap.settings.settings import load_settings, variable_of
from punie.commands.running import EXIT_FAILED, command_environ, start_logging, unless_interrupted, wrong
from punie.domain.errors import SettingsError
from punie.domain.servers.description import ServerDescription, ServerPlan, described, plan_of
from punie.domain.servers.inputs import DescriptionError, Wanted
from punie.domain.values.display import display_exact, one_line

_LONGEST_SAYING = 300


MOST_FOUND = 200


class SourceError(Exception):
    """Why there is no description to read, in words for a person."""


@frozen
class Found:
    """One entry of a registry: the server, if its entry can be read, and the plan for it, else why there is none."""

    description: ServerDescription | None
    plan: ServerPlan | None = None
    problem: str | None = None


def plan_text(plan: ServerPlan, name: str, place: str, described_by: str) -> str:
    """All that a person decides on; the command line or address and fixed values are whole."""
    return "".join(f"{line}\n" for line in _plan_lines(plan, name, place, described_by))


def plan_json(plan: ServerPlan, name: str, place: str, *, added: bool) -> str:
    """The same as one JSON object, on one line."""
    told = {
        "name": name,
        "server": plan.description.name,
        "version": plan.description.version,
        "command": plan.line,
        "source": plan.source,
        "entry": plan.entry,
        "wanted": [
            {"variable": one.variable, "for": one.purpose, "secret": one.secret, "description": one.description}
            for one in plan.wanted
        ],
        "leftOut": list(plan.left_out),
        "warnings": list(plan.warnings),
        "file": place,
        "added": added,
    }
    return json.dumps(told)


def found_text(found: Sequence[Found]) -> str:
    """Two or three lines a server."""
    return "".join(f"{line}\n" for one in found for line in _found_lines(one))


def found_json(found: Sequence[Found]) -> str:
    """The same as one JSON list, on one line; what has no name is left out."""
    return json.dumps([
        {
            "name": one.description.name,
            "version": one.description.version,
            "description": one.description.description,
            "status": one.description.status,
            "command": None if one.plan is None else one.plan.line,
            "warnings": [] if one.plan is None else list(one.plan.warnings),
            "problem": one.problem,
        }
        for one in found
        if one.description is not None
    ])  # fmt: skip


def _plan_lines(plan: ServerPlan, name: str, place: str, described_by: str) -> Iterator[str]:
    said = plan.description
    yield f"{display_exact(said.name)} {display_exact(said.version)}: {one_line(said.description, _LONGEST_SAYING)}"
    yield f"as described by {display_exact(described_by)}"
    runs = "command" in plan.entry
    source = one_line(plan.source, _LONGEST_SAYING)
    yield f"{source}, would run on this machine, with your rights:" if runs else f"{source}, would be reached at:"
    yield f"\n  {display_exact(plan.line)}\n"
    for key, what in (("env", "variable"), ("headers", "header")):
        pairs = cast("Mapping[str, str]", plan.entry.get(key, {}))
        yield from (f"  with the {what} {display_exact(given)}={display_exact(pairs[given])}" for given in pairs)
    yield from (f"  to be set by you: {_wanted(one)}" for one in plan.wanted)
    if plan.left_out:
        yield f"  left out, as it may be: {one_line(', '.join(plan.left_out), _LONGEST_SAYING)}"
    yield from (f"  not taken: {one_line(why, _LONGEST_SAYING)}" for why in plan.skipped)
    yield from (f"  LOOK AT THIS: {display_exact(one_line(warning, 5_000))}" for warning in plan.warnings)
    yield f"It would be called {display_exact(name)} in {display_exact(place)}."


def _wanted(one: Wanted) -> str:
    kind = ", a secret" if one.secret else ""
    said = f": {one_line(one.description, _LONGEST_SAYING)}" if one.description else ""
    return f"the variable {display_exact(one.variable)} of your environment (for {one_line(one.purpose)}{kind}){said}"


def _found_lines(one: Found) -> Iterator[str]:
    if one.description is None:
        yield f"an entry that cannot be read: {one_line(one.problem or '', _LONGEST_SAYING)}"
        return
    said = one.description
    status = "" if said.status == "active" else f" ({said.status})"
    yield f"{one_line(said.name, 200)} {one_line(said.version, 60)}{status}"
    if said.description:
        yield f"  {one_line(said.description, _LONGEST_SAYING)}"
    if one.plan is not None:
        yield f"  {display_exact(one.plan.line)}"
    else:
        yield f"  cannot be added: {one_line(one.problem or '', _LONGEST_SAYING)}"


def registry_of(environ: Mapping[str, str]) -> str:
    """The registry that the user configured: a project has no say. Raises `SourceError` and `SettingsError`."""
    registry = load_settings(environ, {}, os.devnull)[REGISTRY]
    if registry is None:
        raise SourceError(
            f"no registry is configured. Set `registry` under [servers] in {user_settings_file(environ)}, or "
            f"{variable_of(REGISTRY.name)}, to the address of one."
        )
    return registry


@define
class SearchMode:
    """One run; `run` gives the exit code."""

    environ: Mapping[str, str]
    query: str
    limit: int
    as_json: bool

    async def run(self) -> int:
        """Ask the registry and show what it found."""
        try:
            entries = await RegistryClient(registry_of(self.environ)).search(self.query, self.limit)
        except (SourceError, SettingsError) as error:
            return wrong(str(error))
        except FetchError as error:
            return wrong(str(error), EXIT_FAILED)
        found = [_found(entry) for entry in entries]
        if self.as_json:
            Pipe(sys.stdout).write(found_json(found) + "\n")
        else:
            Pipe(sys.stdout).write(found_text(found) or "The registry knows of none.\n")
        return 0


def _found(entry: object) -> Found:
    """One that is broken or malicious says so, and hides no other."""
    try:
        description = described(entry)
    except DescriptionError as error:
        return Found(None, problem=str(error))
    try:
        return Found(description, plan_of(description))
    except DescriptionError as error:
        return Found(description, problem=str(error))


def run_search(*, query: str, limit: int, as_json: bool) -> int:
    """Run `punie servers search`; gives the exit code."""
    if not 0 < limit <= MOST_FOUND:
        return wrong(f"--limit must be from 1 to {MOST_FOUND}.")
    environ = command_environ()
    start_logging(environ, None)
    mode = SearchMode(environ, query, limit, as_json)
    return anyio.run(unless_interrupted, mode.run)
