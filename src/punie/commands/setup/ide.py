"""`punie setup jetbrains` and `zed`: Punie's entry in the IDE's own file, of which everything else stays as it is."""

from __future__ import annotations

import difflib
import io
import itertools
import json
import os
import sys
from collections.abc import Callable, Mapping
from enum import StrEnum
from pathlib import Path

from attrs import define, frozen

from punie.bootstrap.settings.files import MAX_FILE_BYTES, bytes_of
from punie.commands.running import Exit, wrong
from punie.commands.settings_writing import replace_file
from punie.commands.setup.ides import (
    DEFAULT_NAME,
    IDES,
    Ide,
    IdeFileError,
    Installation,
    agent_args,
    agents_in,
    runs,
    this_installation,
    with_entry,
    words_of,
)
from punie.domain.values.display import display_exact
from punie.domain.values.json_value import object_in
from punie.mechanics.files import locked_folder

LOCK_LIMIT_S = 5.0
_TRIES = 5


class EntryState(StrEnum):
    """The kinds of entries that an IDE's file may have for Punie."""

    OWN = "own"
    OTHER = "other"
    MISSING = "missing"
    BROKEN = "broken"


@frozen
class FoundEntry:
    """The entry for Punie in an IDE's file. `detail` is a sentence without its full stop, or the reason of `BROKEN`."""

    ide: Ide
    path: Path
    state: EntryState
    detail: str
    name: str | None = None
    program: str | None = None
    args: tuple[str, ...] = ()
    runs: bool = False
    """Whether the program is there and may be run."""


@frozen
class Change:
    """One change of a file: its text before and after, and the real file where a link leads to it."""

    before: str
    after: str
    target: Path
    is_linked: bool

    @property
    def is_needed(self) -> bool:
        """Whether anything has to be written."""
        return self.before != self.after


def find_entry(ide: Ide, environ: Mapping[str, str], installation: Installation) -> FoundEntry:
    """Our entry in the IDE's file: one that starts this installation, else one of our name. Never raises."""
    path = ide.file(environ)
    try:
        agents = agents_in(read_text(path))
    except (IdeFileError, OSError) as error:
        return FoundEntry(ide, path, EntryState.BROKEN, why(error))
    found = [_found(ide, path, name, entry, installation) for name, entry in agents.items()]
    ours = [one for one in found if one.state is EntryState.OWN]
    named = [one for one in found if DEFAULT_NAME in str(one.name).casefold()]
    missing = FoundEntry(ide, path, EntryState.MISSING, "it names no agent punie" if agents else "it names no agent")
    return next(iter((*ours, *named)), missing)


def _found(ide: Ide, path: Path, name: str, entry: object, installation: Installation) -> FoundEntry:
    fields = object_in(entry)
    said, args = fields.get("command"), words_of(fields.get("args"))
    program = said if isinstance(said, str) else ""
    is_there = runs(program)
    is_own = is_there and installation.starts(program, args)
    if is_own:
        detail = f"the agent {name} starts this installation"
    elif is_there:
        detail = f"the agent {name} starts another program, {program}"
    else:
        detail = f"the agent {name} names no program that can be run: {program or 'it has no command'}"
    state = EntryState.OWN if is_own else EntryState.OTHER
    return FoundEntry(ide, path, state, detail, name, program, tuple(args), is_there)


def read_text(path: Path) -> str:
    """The file's text, empty where there is no file. Raises `IdeFileError`, and `OSError`."""
    try:
        data = bytes_of(path)
    except FileNotFoundError:
        return ""
    if len(data) > MAX_FILE_BYTES:
        raise IdeFileError(f"it is larger than {MAX_FILE_BYTES} bytes")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise IdeFileError(f"it is no text in UTF-8 (byte {error.start + 1})") from None


def planned(path: Path, changed: Callable[[str], str]) -> Change:
    """The change, without writing anything. Raises `IdeFileError` and `OSError`."""
    target = Path(os.path.realpath(path))
    before = read_text(path)
    # Only a link at the end is mentioned: a whole home is often behind one.
    return Change(before, changed(before), target, path.is_symlink() or path.parent.is_symlink())


def write(path: Path, changed: Callable[[str], str]) -> tuple[Change, Path | None]:
    """Make the change, one process at a time; returns it, and the file with the former content.

    The file is replaced at once or not at all. Raises `IdeFileError` and `OSError`.
    """
    change = planned(path, changed)
    if not change.is_needed:
        return change, None
    folder = change.target.parent
    folder.mkdir(parents=True, exist_ok=True)
    with locked_folder(str(folder), LOCK_LIMIT_S):
        for _ in range(_TRIES):
            change = planned(path, changed)
            if not change.is_needed:
                return change, None
            backup = _backup(change) if change.target.exists() else None
            if backup is not None and not os.access(change.target, os.W_OK):
                raise IdeFileError("it is read-only, so somebody else looks after it: add the agent there")
            if read_text(change.target) == change.before:
                replace_file(change.target, change.before, change.after, backup)
                return change, backup
    raise IdeFileError("it is being changed by another program; try again")


def _backup(change: Change) -> Path:
    """A free name beside the file, or one that has the same content."""
    for number in itertools.count(1):
        path = change.target.with_name(f"{change.target.name}.bak{number if number > 1 else ''}")
        if not os.path.lexists(path) or _says(path, change.before):
            return path
    raise AssertionError("numbers do not end")


def _says(path: Path, text: str) -> bool:
    try:
        return not path.is_symlink() and read_text(path) == text
    except (IdeFileError, OSError):
        return False


def why(error: Exception) -> str:
    """The reason of an error about a file, without the file's name."""
    return (error.strerror or "it cannot be used") if isinstance(error, OSError) else str(error)


LONGEST_NAME = 64


@define
class IdeSetup:
    """One run of `punie setup` for an IDE. `flags` are the arguments that the agent is started with."""

    ide: Ide
    environ: Mapping[str, str]
    installation: Installation
    name: str
    flags: Mapping[str, str]
    dry_run: bool
    as_json: bool

    def run(self) -> int:
        """Change the file, or show the change; returns the exit code."""
        path = self.ide.file(self.environ)
        if not self.name.strip() or not self.name.isprintable() or len(self.name) > LONGEST_NAME:
            return wrong(f"--name has to be 1 to {LONGEST_NAME} characters that can be seen.")
        try:
            change, backup = (planned(path, self._changed), None) if self.dry_run else write(path, self._changed)
        except IdeFileError as error:
            return wrong(display_exact(f"{path}: {error}. Nothing was changed."))
        except OSError as error:
            return wrong(display_exact(f"{path}: {why(error)}. Nothing was changed."), Exit.FAILED)
        if self.as_json:
            sys.stdout.write(json.dumps(self._fields(path, change, backup)) + "\n")
        else:
            self._say(path, change, backup)
        return 0

    def _changed(self, text: str) -> str:
        there = object_in(agents_in(text).get(self.name))
        wanted = agent_args(self.installation.args, there.get("args"), self.flags)
        return with_entry(text, self.name, self.ide.entry(self.installation.program, wanted))

    def _entry(self, change: Change) -> Mapping[str, object]:
        return object_in(agents_in(change.after)[self.name])

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
            "next": list(self.ide.next_steps(self.name, self.environ)),
        }

    def _say(self, path: Path, change: Change, backup: Path | None) -> None:
        out = sys.stdout
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
        for line in self.ide.next_steps(self.name, self.environ):
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
    """The change in the form of `diff -u`, each line with its own line end."""
    before, after = (io.StringIO(text, newline="\n").readlines() for text in (change.before, change.after))
    name = str(change.target)
    said = ""
    for line in difflib.unified_diff(before, after, name, name):
        said += line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"
    return said


def run_ide_setup(ide: str, *, as_json: bool, dry_run: bool, name: str, model: str | None, mode: str | None) -> int:
    """Run `punie setup jetbrains` or `zed`; returns the exit code."""
    flags = {flag: value for flag, value in (("--model", model), ("--mode", mode)) if value is not None}
    chosen = next(one for one in IDES if one.key == ide)
    return IdeSetup(chosen, os.environ, this_installation(), name, flags, dry_run, as_json).run()
