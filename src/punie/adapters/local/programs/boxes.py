"""The boxes around programs that run without a question (`landbox`), with a folder for their temporary files."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Generator, Mapping, Sequence
from typing import TypeAlias

import anyio.to_thread
from attrs import define, evolve, field, frozen

from landbox.box import Box as Landbox
from landbox.box import held, inside
from landbox.boxes import Looking, working
from landbox.bubblewrap import options
from punie.adapters.local.files.output_store import LocalOutputStore
from punie.domain.errors import ToolFailedError
from punie.domain.values.paths import is_inside
from punie.domain.values.terminal import Box, Command, Confinement
from shellsight.secret_names import SECRET_FOLDERS, is_secret

PROGRAM = "bwrap"

HIDDEN_FILES = (".netrc", ".git-credentials", ".pypirc", ".npmrc", ".pgpass")
"""Files below the user's home that hold passwords; a sandbox hides them and the `SECRET_FOLDERS`."""

READ_ONLY_IN_ROOTS = (".punie", ".mcp.json", ".git/hooks", ".git/config")
"""Files that decide over later commands: a command in a sandbox can read them and not change them."""


@frozen
class Confined:
    """A command on its way to its box; lives until the program ended. `scratch` is its folder for temporary files."""

    command: Command
    box: Landbox | None = None
    scratch: str | None = None


def remove_folder(path: str | None) -> None:
    """Remove a program's folder, and what was written beside it for its start; blocks, never raises."""
    if path is not None:
        shutil.rmtree(path, ignore_errors=True)
        with contextlib.suppress(OSError):
            os.unlink(f"{path}.json")


@frozen
class BubblewrapBoxes:
    """Every program inside bubblewrap, those that a person allowed too; the methods are as of `LandlockBoxes`.

    Inside, the whole machine can be read but for the user's secrets and the absolute paths in `hidden`, only the
    `roots` and a `/tmp` of the command's own can be written, and no other process is seen. Where bubblewrap is missing,
    a command is refused, never run without it.
    """

    roots: tuple[str, ...]
    home: str
    hidden: tuple[str, ...] = ()
    network: bool = False
    find: Callable[[str], str | None] = field(default=shutil.which)

    async def hold(self) -> bool:
        return True

    def confine(self, command: Command) -> Confined:
        program = self.find(PROGRAM)
        if program is None:
            raise ToolFailedError(
                "The settings ask for a sandbox (permissions.sandbox), and bubblewrap (bwrap) is not installed, so "
                "nothing was run. Ask the user to install bubblewrap, or to take the setting out."
            )
        secret = (f"{self.home}/{name}" for name in (*sorted(SECRET_FOLDERS), *HIDDEN_FILES))
        words = options(
            self.roots,
            command.cwd,
            read_only=READ_ONLY_IN_ROOTS,
            hidden=(*secret, *self.hidden),
            network=self.network,
            looks=command.confinement.box is Box.LOOK,
        )
        return Confined(evolve(command, program=program, args=(*words, command.program, *command.args)))


@define(eq=False)
class LandlockBoxes:
    """Landlock's boxes around the programs that run without a question; no box around those that a person allowed.

    `roots` are the session's directories with links followed, `hidden` absolute paths of Punie's own state, which no
    boxed program reads. With `required`, nothing runs without a question where this machine holds no box.
    """

    roots: tuple[str, ...]
    home: str
    hidden: tuple[str, ...]
    outputs: LocalOutputStore
    environment: Mapping[str, str]
    required: bool = False
    _looking: Looking = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._looking = Looking(self.roots, self.home, self.environment, is_secret, self.hidden)

    async def hold(self) -> bool:
        """Whether commands that run without a question get their box here, or do not run."""
        return self.required or await anyio.to_thread.run_sync(held) > 0

    def confine(self, command: Command) -> Confined:
        """The command with its box. Blocks for a moment; raises `ToolFailedError` where there is no box to be had."""
        wanted = command.confinement
        if wanted.box is Box.NONE:
            return Confined(command)
        if not held():
            raise ToolFailedError(
                "The settings ask for Landlock (permissions.sandbox), which this machine does not have, so nothing was "
                "run. Ask the user to take the setting out, or to run Punie on Linux 5.13 or later."
            )
        try:
            scratch = self.outputs.folder_of_program()
        except OSError as error:
            raise ToolFailedError(f"There is no room for temporary files ({error}), so nothing was run.") from None
        if wanted.box is Box.LOOK:
            # Programs that came with Punie are run although its own environment need not be on PATH.
            ours = os.path.dirname(command.program) == os.path.dirname(sys.executable)
            runs = (command.program,) if ours and not is_inside(command.program, self.roots) else ()
            return Confined(
                command, self._looking.box(scratch, wanted.reads, wanted.lists, (*runs, *wanted.runs)), scratch
            )
        return Confined(command, working(self.roots, scratch), scratch)


Boxes: TypeAlias = BubblewrapBoxes | LandlockBoxes

Start: TypeAlias = Callable[[Sequence[str], Mapping[str, str]], "subprocess.Popen[bytes]"]
"""Starts a program: with its words, and the variables that its box adds to its environment."""


@contextlib.contextmanager
def looking(
    boxes: Boxes | None, words: Sequence[str], start: Start, runs: Sequence[str] = ()
) -> Generator[subprocess.Popen[bytes]]:
    """A program of our own that only looks, in its box where there is one, started by `start`; blocks for a moment.

    `runs` are absolute paths of programs, and folders with programs, that it may read and run beside the system's.
    Raises `OSError`, `ToolFailedError` and `UnheldError` where the program or its box cannot be had.
    """
    if boxes is None or (isinstance(boxes, LandlockBoxes) and not held()):
        yield start(words, {})
        return
    program, *args = words
    confinement = Confinement(Box.LOOK, runs=tuple(runs))
    confined = boxes.confine(Command(program, tuple(args), "/", program, confinement=confinement))
    argv, box = (confined.command.program, *confined.command.args), confined.box
    try:
        yield start(argv, {}) if box is None else inside(box, lambda: start(argv, dict(box.environment)))
    finally:
        remove_folder(confined.scratch)
