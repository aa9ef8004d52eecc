"""A program that a model wrote to be run in a sandbox: what it may take, and how it ended."""

from __future__ import annotations

from attrs import frozen

from punie.domain.values.json_value import JsonValue

RUN_CODE = "run_code"
PROGRAM_LIMIT_CHARS = 100_000


@frozen
class ProgramLimits:
    """What one program may take; its calls of tools have limits of their own, and their time is not counted."""

    time_s: float = 10.0
    memory_bytes: int = 67_108_864
    depth: int = 200
    calls: int = 1_000
    printed_bytes: int = 262_144


@frozen
class ProgramEnd:
    """How a program ended: the value of its last expression, or the error that ended it, and what it printed.

    `line_1based` is the program's line at which the error came up; None where nobody knows.
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
