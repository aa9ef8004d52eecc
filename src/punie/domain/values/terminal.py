"""Programs that run: the command, what it printed, how it ended (ACP: terminals)."""

from __future__ import annotations

import shlex

from attrs import frozen

OUTPUT_LIMIT_BYTES = 1_048_576
"""What a terminal keeps of a program's output: the last of it, as ACP's `outputByteLimit` says."""


@frozen
class Command:
    """A program to start: `program` with `args`, in the absolute directory `cwd`. `line` is how a person reads it.

    `memory_mb` bounds the data of each of its processes, in MiB, where this machine runs it; None leaves it open. With
    `keeps_all`, what it prints beyond its terminal's limit is kept in a file, where this machine runs it.
    """

    program: str
    args: tuple[str, ...]
    cwd: str
    line: str
    output_limit_bytes: int = OUTPUT_LIMIT_BYTES
    memory_mb: int | None = None
    keeps_all: bool = False

    @classmethod
    def of(
        cls,
        command: str,
        args: tuple[str, ...] | None,
        cwd: str,
        *,
        memory_mb: int | None = None,
        keeps_all: bool = False,
    ) -> Command:
        """The command of a tool call: with `args` that program with those arguments, without them one shell line."""
        if args is None:
            return cls("/bin/sh", ("-c", command), cwd, command, memory_mb=memory_mb, keeps_all=keeps_all)
        line = shlex.join((command, *args))
        return cls(command, args, cwd, line, memory_mb=memory_mb, keeps_all=keeps_all)


@frozen
class ExitStatus:
    """How a program ended: an exit code, or the name of the signal that ended it."""

    exit_code: int | None = None
    signal: str | None = None

    def __str__(self) -> str:
        if self.signal is not None:
            return f"ended by {self.signal}"
        return "ended" if self.exit_code is None else f"exit code {self.exit_code}"


@frozen
class KeptOutput:
    """A file of this machine with more of an output than goes with it: the file starts where the output starts.

    `before` counts the output's UTF-8 bytes that come before the text that goes with it. `left_out` counts those that
    even the file lacks, because there were too many; its beginning it always has.
    """

    path: str
    before: int
    left_out: int = 0


@frozen
class TerminalOutput:
    """What a program printed so far; `truncated` where the beginning was dropped, `exit` once it ended.

    `kept` names the file that has what was dropped, where there is one.
    """

    text: str
    truncated: bool = False
    exit: ExitStatus | None = None
    kept: KeptOutput | None = None
