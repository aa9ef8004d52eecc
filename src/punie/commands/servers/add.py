"""`punie servers add`: a server that somebody described, written into the user's own file after a person saw it all."""

from __future__ import annotations

import os
import re
import signal
import sys
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

import anyio
from attrs import define, field

from punie.adapters.console.output import Pipe
from punie.adapters.registry import FetchError, RegistryClient, fetch_text
from punie.bootstrap.server_files import NO_SERVERS, ROOT_KEYS, ServersFileError, user_servers_file
from punie.bootstrap.settings.files import MAX_FILE_BYTES, bytes_of
from punie.commands.running import (
    EXIT_FAILED,
    EXIT_OF_SIGNAL,
    EXIT_USAGE,
    ask_person,
    command_environ,
    person_is_here,
    start_logging,
    unless_interrupted,
    wrong,
)
from punie.commands.servers.change import ServersFile
from punie.commands.servers.search import SourceError, plan_json, plan_text, registry_of
from punie.domain.errors import SettingsError
from punie.domain.servers.description import ServerPlan, parse_description, plan_of
from punie.domain.servers.inputs import DescriptionError
from punie.domain.values.display import display_safe

_IN_A_REGISTRY = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]*\.[A-Za-z0-9.-]+/[A-Za-z0-9._-]+")
_USABLE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


@define
class AddMode:
    """One run; `run` gives the exit code. `ask` puts a question to a person, None where there is none."""

    environ: Mapping[str, str]
    source: str
    name: str | None
    yes: bool
    as_json: bool
    ask: Callable[[str], str] | None
    _asked_for: str | None = field(default=None, init=False)
    _described_by: str = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._described_by = self.source

    def run(self) -> int:
        """Read the description, show what it comes to, ask, and write."""
        try:
            found = self._found()
            return found if isinstance(found, int) else self._add(found)
        except FetchError as error:
            return wrong(str(error), EXIT_FAILED)
        except DescriptionError as error:
            return wrong(f"{self.source}: {error}")
        except (SourceError, ServersFileError, SettingsError) as error:
            return wrong(str(error))

    def _found(self) -> str | int:
        """The description, from an address, a file or the registry; an exit code where a signal came first."""
        if self.source.lower().startswith(("http://", "https://")):
            return _fetched(lambda: fetch_text(self.source))
        is_there = os.path.exists(self.source)  # noqa: PTH110 - Path.exists raises where a name is too long
        if not is_there and _IN_A_REGISTRY.fullmatch(self.source) and not self.source.endswith(".json"):
            registry = RegistryClient(registry_of(self.environ))
            self._asked_for, self._described_by = self.source, registry.base
            return _fetched(lambda: registry.latest(self.source))
        try:
            data = bytes_of(Path(self.source))
            if len(data) > MAX_FILE_BYTES:
                raise SourceError(f"{self.source}: it is larger than {MAX_FILE_BYTES} bytes")
            return data.decode("utf-8").removeprefix("\ufeff")
        except OSError as error:
            why = error.strerror or "it cannot be read"
            raise SourceError(
                f"{self.source}: {why}. Name a server.json, its address, or a server of the registry."
            ) from error
        except UnicodeDecodeError:
            raise SourceError(f"{self.source}: it is no text in UTF-8") from None

    def _add(self, text: str) -> int:
        description = parse_description(text)
        if self._asked_for not in {None, description.name}:
            raise DescriptionError(f"the registry answered with another server, {description.name}")
        plan = plan_of(description, self.name)
        name = self.name or description.short_name
        if not _USABLE_NAME.fullmatch(name) or name in {*ROOT_KEYS, *NO_SERVERS}:
            raise SourceError(
                f"{name!r} cannot be its name here: choose a short one of letters and digits with --name."
            )
        file = ServersFile(user_servers_file(self.environ))
        there = file.servers()
        if name in there:
            return self._there(name, plan, file, same=there[name] == plan.entry)
        code = self._confirmed(plan, name, file)
        if code is not None:
            return code
        file.add(name, plan.entry)
        if self.as_json:
            self._tell(plan, name, file, added=True)
        else:
            Pipe(sys.stdout).write(f"Added, from the next session on.{_next_step(plan, name)}\n")
        return 0

    def _there(self, name: str, plan: ServerPlan, file: ServersFile, *, same: bool) -> int:
        if not same:
            return wrong(
                f"{file.path} has a server {name} already. Choose another name with --name, or take that one out with "
                f"`punie servers remove {name}`.",
                EXIT_USAGE,
            )
        if self.as_json:
            self._tell(plan, name, file, added=False)
        else:
            Pipe(sys.stdout).write(f"{display_safe(name)} is in {display_safe(str(file.path))} already, just so.\n")
        return 0

    def _confirmed(self, plan: ServerPlan, name: str, file: ServersFile) -> int | None:
        """Show it all and ask; the exit code where it is not to be added."""
        shown = plan_text(plan, name, str(file.path), self._described_by)
        (Pipe(sys.stderr) if self.as_json else Pipe(sys.stdout)).write(shown)
        if self.yes:
            return None
        if self.ask is None:
            return wrong("nobody can be asked here. Look at what is shown and add --yes to add it.")
        try:
            said = self.ask("Add this server? [y/N] ")
        except KeyboardInterrupt:
            sys.stderr.write("\nNothing was changed.\n")
            return EXIT_OF_SIGNAL[signal.SIGINT]
        if said.strip().lower() in {"y", "yes"}:
            return None
        sys.stderr.write("Nothing was changed.\n")
        return EXIT_FAILED

    def _tell(self, plan: ServerPlan, name: str, file: ServersFile, *, added: bool) -> None:
        Pipe(sys.stdout).write(plan_json(plan, name, str(file.path), added=added) + "\n")


def _next_step(plan: ServerPlan, name: str) -> str:
    unset = [one.variable for one in plan.wanted]
    first = f" Set {', '.join(unset)} in your environment first." if unset else ""
    return f"{first} `punie servers check {display_safe(name)}` tries it."


def _fetched(ask: Callable[[], Awaitable[str]]) -> str | int:
    found: list[str] = []
    failed: list[FetchError] = []

    async def get() -> int:
        # Caught inside: the task group that watches the signals would hand it on in a group.
        try:
            found.append(await ask())
        except FetchError as error:
            failed.append(error)
        return 0

    code = anyio.run(unless_interrupted, get)
    if failed:
        raise failed[0]
    return found[0] if found else code


def run_add(*, source: str, name: str | None, yes: bool, as_json: bool) -> int:
    """Run `punie servers add`; gives the exit code."""
    environ = command_environ()
    start_logging(environ, None)
    return AddMode(environ, source, name, yes, as_json, ask_person if person_is_here() else None).run()
