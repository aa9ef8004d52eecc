"""Tools: who lists them, who runs them, and what checks their arguments."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Awaitable, Callable, Mapping
from typing import Protocol, TypeAlias, runtime_checkable

from punie.domain.pipelines.expressions import Expression, StepView, WorkLeft
from punie.domain.pipelines.pipeline import ProgramEnd, ProgramLimits
from punie.domain.tools.checks import Check, PlannedCheck, ProblemReport, TestReport
from punie.domain.tools.discovery import CatalogAnswer
from punie.domain.tools.tool import ToolCall, ToolResult
from punie.domain.values.content import ResultContent
from punie.domain.values.json_value import JsonObject, JsonValue
from punie.domain.values.terminal import ExitStatus, TerminalOutput


@runtime_checkable
class CallProgress(Protocol):
    """How a running call shows what it has so far; `call_id` is the call's, as the client knows it."""

    call_id: str

    @abstractmethod
    async def show(self, *content: ResultContent) -> None:
        """Replace what the client shows of the call.

        May be called as often as there is something new: what comes too fast for a person is left out, the last is not.
        """
        ...

    @abstractmethod
    async def report(self, message: str, fraction: float | None = None) -> None:
        """Say how far the call is: one line, and the part that is done (0 to 1) where it is known."""
        ...


@runtime_checkable
class ToolExecutor(Protocol):
    """Runs calls that the tool desk let through; nothing else calls it. Lives as long as its session."""

    @abstractmethod
    async def execute(self, call: ToolCall, progress: CallProgress) -> ToolResult:
        """Run one call whose arguments fit the tool's schema, and give its result.

        Raises a `ToldToModel` error where the tool cannot do it. Runs at most once: it is never repeated. When it is
        cancelled, it stops what it started before it lets go, within the bound its caller sets.
        """
        ...


@runtime_checkable
class ToolProvider(Protocol):
    """Lists what one source offers; lives as long as its session."""

    @abstractmethod
    async def discover_tools(self) -> CatalogAnswer:
        """Ask the source anew and give its whole answer: good entries in its order, bad ones with reasons.

        Every call asks again; caching and time limits are the caller's. Raises `ToolSourceError` where the source
        refuses, answers nonsense or is gone. Cancelling it leaves nothing running here.
        """
        ...


class ToolSourceError(Exception):
    """The source could not be read; the sentence says why. The caller falls back."""


@runtime_checkable
class ArgumentValidator(Protocol):
    """Checks schemas and arguments; lives as long as the session, so that a schema is compiled once.

    It reads no file and no address: a schema that refers to a remote document is refused.
    """

    @abstractmethod
    def schema_problem(self, schema: JsonObject) -> str | None:
        """Why the schema cannot be used (does not compile, unknown draft, remote reference), or None."""
        ...

    @abstractmethod
    def problems(self, schema: JsonObject, arguments: JsonObject) -> tuple[str, ...]:
        """What is wrong with the arguments, each naming the field and what was expected; empty if nothing is."""
        ...


@runtime_checkable
class PythonChecks(Protocol):
    """Knows which program serves a check and how to read what it prints; lives as long as the session.

    It runs nothing: the command goes through the session's terminals, after leave was given.
    """

    @abstractmethod
    def plan(self, check: Check, path: str | None) -> PlannedCheck:
        """The command that checks `path` (relative to the session's directory, or the whole project).

        A few looks at the disk, no more. Raises `ToolFailedError` where no program for it is installed.
        """
        ...

    @abstractmethod
    async def read(
        self, planned: PlannedCheck, output: TerminalOutput, ended: ExitStatus
    ) -> ProblemReport | TestReport:
        """What the program found. Raises `ToolFailedError` where it broke or cannot be understood."""
        ...


HostCall: TypeAlias = Callable[[str, tuple[JsonValue, ...], JsonObject], Awaitable[JsonValue]]
"""A function that the program calls: name, arguments by place, arguments by name. Raises `CallRaisedError`."""


@runtime_checkable
class ProgramSandbox(Protocol):
    """Runs programs that reach nothing: no file, no network, no process, no environment. Lives as long as the session.

    Whatever a program does, it ends within its limits and takes nothing of this process with it.
    """

    @abstractmethod
    async def run(self, program: str, call: HostCall, limits: ProgramLimits) -> ProgramEnd:
        """Run one to its end; `call` is awaited for each function that the program does not define itself.

        Cancelling it ends the program at once. An error in the program is in its end and is not raised; raises
        `ToolFailedError` where no program can be run at all.
        """
        ...


@runtime_checkable
class Expressions(Protocol):
    """Parses and evaluates; keeps nothing, so that one serves the whole process.

    Evaluating has no effect, reaches nothing but the names it is given, gives the same value each time and ends: what
    it may cost is bounded, in time and in memory, whatever the expression and the values are.
    """

    @abstractmethod
    def parse(self, text: str) -> Expression:
        """The expression, with all that it refers to. Raises `ExpressionError` where it cannot be read."""
        ...

    @abstractmethod
    def value(
        self, expression: Expression, names: Mapping[str, JsonValue | Mapping[str, StepView]], left: WorkLeft
    ) -> JsonValue:
        """What it comes to with these names, a frozen JSON value. Raises `ExpressionError`."""
        ...
