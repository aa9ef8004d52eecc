"""`punie servers remove`, `enable`, `disable` and `revoke`: what a person takes out, switches, or takes back."""

from __future__ import annotations

import difflib
import json
import logging
import os
import sys
from collections.abc import Mapping
from pathlib import Path

import anyio
from attrs import define

from punie.adapters.console.pipe import Pipe
from punie.adapters.storage.servers import SqliteServerApprovals
from punie.adapters.storage.state_file import StateFile
from punie.bootstrap.logs import start_logging
from punie.bootstrap.server_files import ServersFileError, configured_servers, user_servers_file
from punie.bootstrap.settings.state import database_file
from punie.commands.servers.add import EXIT_FAILED, EXIT_USAGE, wrong
from punie.commands.servers.file import ServersFile
from punie.domain.errors import UnknownServerError
from punie.domain.servers.server import ServerConfig, ServerOrigin
from punie.domain.values.display import display_safe

_DONE = {
    "remove": "taken out of {file}. What was there before is beside it as {file}.bak.",
    "disable": "disabled in {file}, from the next session on.",
    "enable": "enabled in {file}, from the next session on.",
}


@define
class ChangeMode:
    """One run; each method gives the exit code. `cwd` is the project's directory, absolute."""

    environ: Mapping[str, str]
    cwd: str
    name: str
    as_json: bool
    log: logging.Logger

    def change(self, action: str) -> int:
        """Change the user's own file; of a project's server say why not."""
        file = ServersFile(user_servers_file(self.environ))
        try:
            if self.name not in file.servers():
                return self._not_ours(action)
            changed = True
            if action == "remove":
                file.remove(self.name)
            else:
                changed = file.switch(self.name, off=action == "disable")
        except ServersFileError as error:
            return wrong(f"{error}. Nothing was changed.", EXIT_USAGE)
        said = _DONE[action].format(file=file.path) if changed else f"{action}d already. Nothing was changed."
        return self._told({"name": self.name, "action": action, "file": str(file.path), "changed": changed}, said)

    async def revoke(self) -> int:
        """Take the approval of a project's server back, also of one that is not configured any more."""
        state = StateFile(database_file(self.environ), self.log)
        approvals = SqliteServerApprovals(state)
        try:
            known = await approvals.approved(self.cwd)
            if self.name not in known:
                near = difflib.get_close_matches(self.name, known, n=3)
                meant = f" Did you mean {' or '.join(near)}?" if near else ""
                return wrong(
                    f"no server {self.name} is approved in {self.cwd}.{meant} Nothing was changed.", EXIT_FAILED
                )
            if not await approvals.revoke(self.cwd, self.name):
                return wrong("that could not be taken back, so it is approved still", EXIT_FAILED)
        finally:
            state.close()
        said = "is not approved any more: it is not started again, in open sessions neither."
        return self._told({"name": self.name, "action": "revoke", "changed": True}, said)

    def _not_ours(self, action: str) -> int:
        configs = configured_servers(self.environ, self.cwd).configs
        found = next((config for config in configs if config.name == self.name), None)
        if found is None or found.origin is not ServerOrigin.PROJECT:
            near = difflib.get_close_matches(self.name, [config.name for config in configs], n=3)
            return wrong(str(UnknownServerError(self.name, tuple(near))), EXIT_USAGE)
        return wrong(f"{_of_the_project(found, action)} Nothing was changed.", EXIT_USAGE)

    def _told(self, fields: Mapping[str, object], said: str) -> int:
        Pipe(sys.stdout).write(
            json.dumps(fields) + "\n" if self.as_json else f"{display_safe(self.name)}: {display_safe(said)}\n"
        )
        return 0


def _of_the_project(config: ServerConfig, action: str) -> str:
    """Its file is everybody's who works on the project: only a person changes it."""
    what = {
        "enable": "take `disabled` out of its entry there by hand",
        "disable": f'write "disabled": true into its entry there by hand, or `punie servers revoke {config.name}`',
        "remove": f"take its entry out there by hand, or `punie servers revoke {config.name}`",
    }[action]
    return f"the server {config.name} is the project's, in {config.place}, which is not yours alone: {what}."


def run_change(*, action: str, name: str, as_json: bool, cwd: str) -> int:
    """Run one of the commands; gives the exit code."""
    environ = {"PUNIE_LOG_LEVEL": "WARNING", **os.environ}
    directory = Path(cwd).resolve()
    if not directory.is_dir():
        return wrong(f"--cwd {cwd} is not a directory. Name one that exists.", EXIT_USAGE)
    mode = ChangeMode(environ, str(directory), name, as_json, start_logging(environ, None))
    return anyio.run(mode.revoke) if action == "revoke" else mode.change(action)
