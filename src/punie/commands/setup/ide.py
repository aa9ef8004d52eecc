"""`punie setup jetbrains` and `punie setup zed`: our entry in the IDE's own file, and what to do there next."""

from __future__ import annotations

import difflib
import io
import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path

from attrs import define

from punie.adapters.console.pipe import Pipe
from punie.commands.setup.ide_entry import IdeFileError, agent_args, agents_in, fields_of, with_entry, words_of
from punie.commands.setup.ide_file import Change, planned, why, write
from punie.commands.setup.ides import Ide, ide_named
from punie.commands.setup.installation import Installation, this_installation
from punie.domain.values.display import display_exact

EXIT_FAILED = 1
EXIT_USAGE = 2
LONGEST_NAME = 64


@define
class IdeSetup:
    """One run; `run` gives the exit code. `flags` are those that the agent is to be started with."""

    ide: Ide
    environ: Mapping[str, str]
    installation: Installation
    name: str
    flags: Mapping[str, str]
    dry_run: bool
    as_json: bool

    def run(self) -> int:
        """Change the file, or show how it would be changed."""
        path = self.ide.file(self.environ)
        if not self.name.strip() or not self.name.isprintable() or len(self.name) > LONGEST_NAME:
            return _wrong(f"--name has to be 1 to {LONGEST_NAME} characters that can be seen.", EXIT_USAGE)
        try:
            change, backup = (planned(path, self._changed), None) if self.dry_run else write(path, self._changed)
        except IdeFileError as error:
            return _wrong(f"{path}: {error}. Nothing was changed.", EXIT_USAGE)
        except OSError as error:
            return _wrong(f"{path}: {why(error)}. Nothing was changed.", EXIT_FAILED)
        if self.as_json:
            Pipe(sys.stdout).write(json.dumps(self._fields(path, change, backup)) + "\n")
        else:
            self._say(path, change, backup)
        return 0

    def _changed(self, text: str) -> str:
        there = fields_of(agents_in(text).get(self.name))
        wanted = agent_args(self.installation.args, there.get("args"), self.flags)
        return with_entry(text, self.name, self.ide.entry(self.installation.program, wanted))

    def _entry(self, change: Change) -> Mapping[str, object]:
        return fields_of(agents_in(change.after)[self.name])

    def _fields(self, path: Path, change: Change, backup: Path | None) -> Mapping[str, object]:
        entry = self._entry(change)
        return {
            "ide": self.ide.key,
            "file": str(path),
            "target": str(change.target),
            "name": self.name,
            "command": entry["command"],
            "args": entry["args"],
            "changed": change.is_needed and not self.dry_run,
            "dryRun": self.dry_run,
            "diff": _diff(change),
            "backup": None if backup is None else str(backup),
            "next": list(self._next()),
        }

    def _next(self) -> tuple[str, ...]:
        return self.ide.next_steps(self.name, self.environ)

    def _say(self, path: Path, change: Change, backup: Path | None) -> None:
        out = Pipe(sys.stdout)
        place = display_exact(str(path))
        if change.is_linked:
            place += f" (a link to {display_exact(str(change.target))})"
        name = display_exact(self.name)
        if not change.is_needed:
            out.write(f"{place} has the agent {name} just so. Nothing was changed.\n")
        elif self.dry_run:
            diff = _diff(change)
            out.write(display_exact(diff) if sys.stdout.isatty() else diff)
            return
        else:
            out.write(f"{place} has the agent {name} now: {display_exact(self._command(change))}\n")
        if backup is not None:
            out.write(f"What was there before is kept as {display_exact(str(backup))}\n")
        for line in self._next():
            out.write(f"{display_exact(line)}\n")
        if self.installation.is_fleeting:
            sys.stderr.write(
                "punie: this installation lies in a cache that is cleared some day, and the agent with it. Install it "
                "for good (uv tool install punie, or pipx install punie) and run this again.\n"
            )

    def _command(self, change: Change) -> str:
        entry = self._entry(change)
        return " ".join([str(entry["command"]), *words_of(entry["args"])])


def _diff(change: Change) -> str:
    """As `diff -u` has it, each line with the line end that it has in the file."""
    before, after = (io.StringIO(text, newline="\n").readlines() for text in (change.before, change.after))
    name = str(change.target)
    said = ""
    for line in difflib.unified_diff(before, after, name, name):
        said += line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"
    return said


def _wrong(what: str, code: int) -> int:
    sys.stderr.write(f"punie: {display_exact(what)}\n")
    return code


def run_ide_setup(*, ide: str, name: str, flags: Mapping[str, str], dry_run: bool, as_json: bool) -> int:
    """Run `punie setup jetbrains` or `zed`; gives the exit code."""
    setup = IdeSetup(ide_named(ide), os.environ, this_installation(), name, flags, dry_run, as_json)
    return setup.run()
