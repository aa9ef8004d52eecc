"""A program that composes calls of tools, as `run_code` runs it: its bounds and its end."""

from __future__ import annotations

from attrs import frozen

from punie.domain.values.json_value import JsonValue

PROGRAM_LIMIT_CHARS = 100_000


@frozen
class ProgramLimits:
    """The bounds of one program; its calls of tools have limits of their own, and their time is not counted."""

    time_s: float = 10.0
    memory_bytes: int = 67_108_864
    depth: int = 200
    calls: int = 1_000
    printed_bytes: int = 262_144


@frozen
class ProgramEnd:
    """The end of a program: the value of its last expression, or the error that ended it, and its output.

    `line_1based` is the program's line of the error; None where it is not known.
    """

    value: JsonValue = None
    printed: str = ""
    error: str | None = None
    line_1based: int | None = None


class CallRaisedError(Exception):
    """A call of a tool did not succeed: raised inside the program, which may catch it as `kind`."""

    def __init__(self, message: str, kind: str = "RuntimeError") -> None:
        super().__init__(message)
        self.kind = kind
