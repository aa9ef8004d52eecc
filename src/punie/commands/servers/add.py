"""`punie servers search` and `add`: the servers of a registry, and a described server put into the user's own file."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeVar, cast

import anyio
from attrs import define, frozen

from punie.adapters.local.server_files import NO_SERVERS, ROOT_KEYS, ServersFileError
from punie.adapters.registry import FetchError, RegistryClient, fetch_text
from punie.bootstrap.server_files import permitted, user_servers_file
from punie.bootstrap.settings.files import user_settings_file
from punie.bootstrap.settings.keys import REGISTRY, variable_of
from punie.bootstrap.settings.sources import load_settings
from punie.commands.running import (
    CommandError,
    Exit,
    command_environ,
    confirm,
    start_logging,
    told,
    unless_interrupted,
    wrong,
)
from punie.commands.servers.change import ServersFile
from punie.commands.servers.description import ServerDescription, ServerPlan, described, parse_description, plan_of
from punie.commands.servers.inputs import DescriptionError, Wanted
from punie.domain.servers.entries import EntrySource, server_of
from punie.domain.servers.server import ServerConfig, ServerOrigin
from punie.domain.values.display import display_exact, display_safe, one_line
from punie.domain.values.variables import Variables
from punie.mechanics.files import MAX_FILE_BYTES, bytes_of
from punie.mechanics.home import home_of

T = TypeVar("T")

_IN_A_REGISTRY = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]*\.[A-Za-z0-9.-]+/[A-Za-z0-9._-]+")
_USABLE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


@define
class AddMode:
    """One run of `punie servers add`."""

    environ: Mapping[str, str]
    source: str
    name: str | None
    yes: bool
    as_json: bool

    def run(self) -> int:
        """Read the description, show the server, ask, and write; returns the exit code."""
        try:
            return self._add(*self._found())
        except DescriptionError as error:
            return wrong(f"{self.source}: {error}")
        except ServersFileError as error:
            return wrong(str(error))

    def _found(self) -> tuple[ServerDescription, str]:
        """The description, and the registry, the address or the file that it is from.

        Raises `DescriptionError`, `CommandError` and `Interrupted`.
        """
        if self.source.lower().startswith(("http://", "https://")):
            return parse_description(_fetched(lambda: fetch_text(self.source))), self.source
        is_there = os.path.exists(self.source)  # noqa: PTH110 - Path.exists raises where a name is too long
        if not is_there and _IN_A_REGISTRY.fullmatch(self.source) and not self.source.endswith(".json"):
            registry = RegistryClient(registry_of(self.environ))
            description = parse_description(_fetched(lambda: registry.latest(self.source)))
            if description.name != self.source:
                raise DescriptionError(f"the registry answered with another server, {description.name}")
            return description, registry.base
        try:
            data = bytes_of(Path(self.source))
            if len(data) > MAX_FILE_BYTES:
                raise CommandError(f"{self.source}: it is larger than {MAX_FILE_BYTES} bytes")
            return parse_description(data.decode("utf-8").removeprefix("\ufeff")), self.source
        except OSError as error:
            why = error.strerror or "it cannot be read"
            raise CommandError(
                f"{self.source}: {why}. Name a server.json, its address, or a server of the registry. A command or a "
                "URL is added with `punie servers add NAME -- COMMAND...` or `--url URL`."
            ) from error
        except UnicodeDecodeError:
            raise CommandError(f"{self.source}: it is no text in UTF-8") from None

    def _add(self, description: ServerDescription, described_by: str) -> int:
        plan = plan_of(description, self.name)
        name = self.name or description.short_name
        if not _USABLE_NAME.fullmatch(name) or name in {*ROOT_KEYS, *NO_SERVERS}:
            raise CommandError(
                f"{name!r} cannot be its name here: choose a short one of letters and digits with --name."
            )
        file = ServersFile(user_servers_file(self.environ))
        there = file.servers()
        if name in there:
            return self._there(name, plan, file, same=there[name] == plan.entry)
        _usable(self.environ, name, plan.entry, file.path)
        shown = "".join(f"{line}\n" for line in _plan_lines(plan, name, str(file.path), described_by))
        confirm(shown, "Add this server?", yes=self.yes, as_json=self.as_json, unasked=Exit.USAGE)
        file.add(name, plan.entry)
        return self._told(plan, name, file, f"Added, from the next session on.{_next_step(plan, name)}\n", added=True)

    def _there(self, name: str, plan: ServerPlan, file: ServersFile, *, same: bool) -> int:
        if not same:
            return wrong(
                f"{file.path} has a server {name} already. Choose another name with --name, or take that one out with "
                f"`punie servers remove {name}`."
            )
        said = f"{display_safe(name)} is in {display_safe(str(file.path))} already, just so.\n"
        return self._told(plan, name, file, said, added=False)

    def _told(self, plan: ServerPlan, name: str, file: ServersFile, said: str, *, added: bool) -> int:
        return told(_plan_object(plan, name, str(file.path), added=added), said, as_json=self.as_json)


def _next_step(plan: ServerPlan, name: str) -> str:
    unset = [one.variable for one in plan.wanted]
    first = f" Set {', '.join(unset)} in your environment first." if unset else ""
    return f"{first} `punie servers check {display_safe(name)}` tries it."


def _fetched(fetch: Callable[[], Awaitable[T]]) -> T:
    """The answer of an address or of the registry. Raises `CommandError` and `Interrupted`."""
    try:
        return anyio.run(unless_interrupted, fetch)
    except FetchError as error:
        raise CommandError(str(error), Exit.FAILED) from error


def run_add(
    *, source: str, name: str | None, yes: bool, as_json: bool, url: str | None = None, typed: list[str] | None = None
) -> int:
    """Run `punie servers add`; `typed` are the words after `--`. Returns the exit code."""
    environ = command_environ()
    start_logging(environ, None)
    if typed is not None or url is not None:
        return add_typed(environ, source, typed, url, as_json=as_json)
    return AddMode(environ, source, name, yes, as_json).run()


_LONGEST_SAYING = 300


MOST_FOUND = 200


@frozen
class Found:
    """One entry of a registry: the server and its plan; `problem` says why one of them is missing."""

    description: ServerDescription | None
    plan: ServerPlan | None = None
    problem: str | None = None


def _plan_object(plan: ServerPlan, name: str, place: str, *, added: bool) -> dict[str, object]:
    return {
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


def _found_row(description: ServerDescription, one: Found) -> dict[str, object]:
    return {
        "name": description.name,
        "version": description.version,
        "description": description.description,
        "status": description.status,
        "command": None if one.plan is None else one.plan.line,
        "warnings": [] if one.plan is None else list(one.plan.warnings),
        "problem": one.problem,
    }


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
    """The registry in the user's settings, not in a project's. Raises `CommandError` and `SettingsError`."""
    registry = load_settings(environ, {}, os.devnull)[REGISTRY]
    if registry is None:
        raise CommandError(
            f"no registry is configured. Set `registry` under [servers] in {user_settings_file(environ)}, or "
            f"{variable_of(REGISTRY.name)}, to the address of one."
        )
    return registry


def _found(entry: object) -> Found:
    """The entry, or its problem: a broken or malicious entry hides no other."""
    try:
        description = described(entry)
    except DescriptionError as error:
        return Found(None, problem=str(error))
    try:
        return Found(description, plan_of(description))
    except DescriptionError as error:
        return Found(description, problem=str(error))


def run_search(*, query: str, limit: int, as_json: bool) -> int:
    """Run `punie servers search`; returns the exit code."""
    if not 0 < limit <= MOST_FOUND:
        return wrong(f"--limit must be from 1 to {MOST_FOUND}.")
    environ = command_environ()
    start_logging(environ, None)
    registry = RegistryClient(registry_of(environ))
    found = [_found(entry) for entry in _fetched(lambda: registry.search(query, limit))]
    said = "".join(f"{line}\n" for one in found for line in _found_lines(one)) or "The registry knows of none.\n"
    return told([_found_row(one.description, one) for one in found if one.description], said, as_json=as_json)


def add_typed(
    environ: Mapping[str, str], name: str, command: Sequence[str] | None, url: str | None, *, as_json: bool
) -> int:
    """Write the server into the user's file; returns the exit code. Nothing is started or reached.

    There is no question, since a person typed exactly what is written. Raises `CommandError`.
    """
    if (command is None) == (url is None):
        raise CommandError("a server has a command or a URL: write `NAME -- COMMAND...` or `NAME --url URL`")
    if command is not None and not command:
        raise CommandError(f"the command is missing: write `punie servers add {name} -- COMMAND...`")
    entry: dict[str, object] = {"url": url} if command is None else {"command": command[0], "args": [*command[1:]]}
    path = user_servers_file(environ)
    config = _usable(environ, name, entry, path)
    try:
        ServersFile(path).add(name, entry)
    except ServersFileError as error:
        said = f"{error}. Nothing was changed; `punie servers remove {name}` takes out one that is there."
        raise CommandError(said) from error
    missing = command is not None and shutil.which(command[0], path=environ.get("PATH")) is None
    note = f" There is no program {command[0]} on your PATH yet." if command is not None and missing else ""
    fields = {"name": name, "command": config.shown, "entry": entry, "file": str(path), "added": True}
    text = f"Added to {path}, from the next session on: {config.shown}\n`punie servers check {name}` tries it.{note}\n"
    return told(fields, "".join(f"{display_safe(line)}\n" for line in text.splitlines()), as_json=as_json)


def _usable(environ: Mapping[str, str], name: str, entry: Mapping[str, object], path: Path) -> ServerConfig:
    """The server of that definition in the user's file. Raises `CommandError` where it would never be used."""
    as_written = Variables(environ, "", home_of(), expands=False)
    written = server_of(name, entry, EntrySource(ServerOrigin.USER, str(path), as_written))
    (config,) = permitted((written,), environ)
    if config.problem or name in {*ROOT_KEYS, *NO_SERVERS}:
        why = config.problem or f"{path}: {name!r} cannot be a server's name"
        raise CommandError(f"{why}. Nothing was changed.")
    return config
