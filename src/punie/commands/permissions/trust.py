"""`punie permissions trust`: letting a project's settings loosen, for exactly the content that was shown."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from typing import TextIO

from attrs import define

from punie.adapters.storage.state_file import StateFile
from punie.adapters.storage.trust import SqliteTrustStore
from punie.bootstrap.settings.files import database_file, project_settings_file
from punie.bootstrap.settings.settings import LeftOut, project_gains
from punie.commands.permissions.judge import rule_words
from punie.commands.running import (
    EXIT_FAILED,
    ask_person,
    command_environ,
    directory_of,
    person_is_here,
    start_logging,
    wrong,
)
from punie.domain.errors import SettingsError
from punie.domain.values.display import display_exact, one_line
from punie.ports.permission import TrustStore


@define
class TrustMode:
    """One run; each method gives the exit code. `ask` puts a question to a person, None where there is none."""

    store: TrustStore
    out: TextIO
    ask: Callable[[str], str] | None

    def trust(self, gains: LeftOut, *, yes: bool) -> int:
        """Show what the file would loosen, and trust its content if the person says so."""
        file = gains.file
        if not gains.values and not gains.rules:
            self.out.write(f"{display_exact(file.path)} loosens nothing: there is nothing to trust.\n")
            return 0
        self._show(gains)
        if not yes and not self._confirmed():
            return EXIT_FAILED
        if not self.store.trust(file.path, file.digest, time.time()):
            sys.stderr.write("punie: that could not be kept, so nothing is trusted.\n")
            return EXIT_FAILED
        self.out.write("Trusted from the next session on, until the file changes.\n")
        return 0

    def revoke(self, path: str) -> int:
        """Trust the file no longer."""
        known = self.store.revoke(path)
        shown = display_exact(path)
        self.out.write(
            f"{shown} is trusted no longer.\n" if known else f"{shown} was not trusted. Nothing was changed.\n"
        )
        return 0 if known else EXIT_FAILED

    def _show(self, gains: LeftOut) -> None:
        self.out.write(f"{display_exact(gains.file.path)} (sha256 {gains.file.digest}) would loosen:\n")
        for key, value in gains.values.items():
            self.out.write(f"  {one_line(key)} = {display_exact(json.dumps(value))}\n")
        for rule in gains.rules:
            self.out.write(f"  {display_exact(rule_words(rule))}\n")

    def _confirmed(self) -> bool:
        if self.ask is None:
            sys.stderr.write("punie: nobody can be asked here. Look at what is shown and add --yes to trust it.\n")
            return False
        if self.ask("Trust this content? [y/N] ").strip().lower() in {"y", "yes"}:
            return True
        sys.stderr.write("Nothing was changed.\n")
        return False


def run_trust(*, cwd: str, revoke: bool, yes: bool) -> int:
    """Trust the project's settings in that directory, or no longer; gives the exit code."""
    environ, directory = command_environ(), str(directory_of(cwd))
    state = StateFile(database_file(environ), start_logging(environ, None))
    mode = TrustMode(SqliteTrustStore(state), sys.stdout, ask_person if person_is_here() else None)
    try:
        if revoke:
            return mode.revoke(str(project_settings_file(directory)))
        return mode.trust(project_gains(environ, directory), yes=yes)
    except SettingsError as error:
        return wrong(str(error))
    finally:
        state.close()
