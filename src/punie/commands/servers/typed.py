"""`punie servers add NAME -- COMMAND...` and `--url URL`: a server as a person types it, in the user's own file."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence

from punie.adapters.local.server_files import NO_SERVERS, ROOT_KEYS, ServersFileError
from punie.bootstrap.server_files import user_servers_file
from punie.commands.running import CommandError, told
from punie.commands.servers.change import ServersFile
from punie.domain.servers.entries import EntrySource, server_of
from punie.domain.servers.server import ServerOrigin
from punie.domain.values.display import display_safe
from punie.domain.values.variables import Variables
from punie.mechanics.home import home_of


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
    as_written = Variables(environ, "", home_of(), expands=False)
    config = server_of(name, entry, EntrySource(ServerOrigin.USER, str(path), as_written))
    if config.problem or name in {*ROOT_KEYS, *NO_SERVERS}:
        why = config.problem or f"{path}: {name!r} cannot be a server's name"
        raise CommandError(f"{why}. Nothing was changed.")
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
