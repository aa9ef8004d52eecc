"""`punie servers search`: what the configured registry knows, and what adding each would run."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping

import anyio
from attrs import define

from punie.adapters.console.pipe import Pipe
from punie.adapters.registry.client import RegistryClient
from punie.adapters.registry.fetching import FetchError
from punie.bootstrap.logs import start_logging
from punie.bootstrap.signals import unless_interrupted
from punie.commands.servers.add import EXIT_FAILED, EXIT_USAGE, SourceError, registry_of, wrong
from punie.commands.servers.plans import Found, found_json, found_text
from punie.domain.errors import SettingsError
from punie.domain.servers.description import described, plan_of
from punie.domain.servers.inputs import DescriptionError

MOST_FOUND = 200


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
            return wrong(str(error), EXIT_USAGE)
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
        return wrong(f"--limit must be from 1 to {MOST_FOUND}.", EXIT_USAGE)
    environ = {"PUNIE_LOG_LEVEL": "WARNING", **os.environ}
    start_logging(environ, None)
    mode = SearchMode(environ, query, limit, as_json)
    return anyio.run(unless_interrupted, mode.run)
