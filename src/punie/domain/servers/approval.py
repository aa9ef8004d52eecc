"""The approval of a project's server: of its definition, and of the content of files that its command line names."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from punie.domain.servers.server import ServerConfig

FILES_LIMIT = 64
DATABASE = "database"
"""In place of the digest of a database, which its server writes to."""


def approval_of(config: ServerConfig, files: Mapping[str, str]) -> str:
    """The text of an approval: the fingerprint of the definition, and a line with digest and path for each file."""
    return "\n".join([config.fingerprint, *(f"{files[path]} {json.dumps(path)}" for path in sorted(files))])


def changed_files(approved: str | None, now: str) -> tuple[str, ...]:
    """The files, as JSON texts, for which alone a server has to be approved again; those that came or went as well."""
    before, after = (approved or "").split("\n"), now.split("\n")
    if before[0] != after[0]:
        return ()
    return tuple(sorted({line.partition(" ")[2] for line in {*before} ^ {*after}}))


def covered(files: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Each file, and in words what of it the approval does not cover."""
    for number, (path, digest) in enumerate(files.items(), start=1):
        part = " (only its beginning and its size)" if "+" in digest else ""
        part = " (a database: its content is not covered)" if digest == DATABASE else part
        yield path, part if number < FILES_LIMIT else f"{part} (the last one that is covered: there may be more)"
