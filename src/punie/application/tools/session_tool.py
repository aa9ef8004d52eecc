"""A tool as the tool desk sees it, whoever serves it: its calls, calls composed of others, and a session's services."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from typing import Protocol, TypeAlias, TypeVar

from attrs import define, field, frozen

from punie.domain.errors import LimitExceededError, ToolFailedError
from punie.domain.pipelines.expressions import WorkLeft
from punie.domain.tools.roles import Role
from punie.domain.tools.tool import ToolCall, ToolDescriptor, ToolResult
from punie.domain.values.content import Diff
from punie.domain.values.json_value import JsonObject
from punie.domain.values.paths import Location
from punie.domain.values.terminal import Command
from punie.ports.tools import CallProgress

CALLS_LIMIT = 1_000
"""Calls that one run may come to, those of composed calls in it counted too."""

DEPTH_LIMIT = 5
"""How deep composed calls may stand in one another."""


@define
class Bounds:
    """What one outermost composed call, and all composed calls in it, may come to; lives as long as it."""

    calls: int = CALLS_LIMIT
    work: WorkLeft = field(factory=WorkLeft)


CallWithin: TypeAlias = "Callable[[ToolCall, Composition], Awaitable[ToolResult]]"


@frozen
class Composition:
    """The desk as one composed call sees it; lives as long as it."""

    tool: str
    call_within: CallWithin
    depth: int = 1
    bounds: Bounds = field(factory=Bounds)

    async def call(self, call: ToolCall) -> ToolResult:
        """One call, with its own card, question, limits and record. Raises `LimitExceededError` beyond the bounds."""
        if self.bounds.calls <= 0:
            raise LimitExceededError(self.tool, f"it came to more than {CALLS_LIMIT} calls. Do it in parts")
        self.bounds.calls -= 1
        return await self.call_within(call, self)

    def deeper(self, tool: str) -> Composition:
        """As a composed call in this one sees it. Raises `LimitExceededError` where that is too deep."""
        if self.depth >= DEPTH_LIMIT:
            raise LimitExceededError(tool, f"it stands {DEPTH_LIMIT} deep in other composed calls, which is the limit")
        return Composition(tool, self.call_within, self.depth + 1, self.bounds)


Effect: TypeAlias = Callable[[CallProgress], Awaitable[ToolResult]]
Composed: TypeAlias = Callable[[Composition, CallProgress], Awaitable[ToolResult]]


@frozen
class CallContext:
    """Where a call stands: ids, the session's directory, the turn, its bounds, and its paths in the order of `paths`.

    `call_id` is the id under which the client sees the call. `memory_mb` bounds each program that it starts here.
    `command` is what the tool's `command` gave: the policy decides on this object, and this object is what runs.
    """

    call_id: str
    turn_id: str
    cwd: str
    time_limit_s: float
    locations: tuple[Location, ...] = ()
    memory_mb: int | None = None
    session_id: str = ""
    command: Command | None = None


async def only_in_a_turn(_progress: CallProgress) -> ToolResult:
    """The effect of a call that is composed of others: outside a turn there is no door for those."""
    raise ToolFailedError("It makes calls of other tools, which takes a turn to make them in.")


@frozen
class PreparedCall:
    """A call that is ready to run: `effect` runs it once; `diffs` is what it would change, for the question.

    Nothing had an effect yet: preparing reads at most. `watches_time` says that the effect keeps to the call's time
    limit by itself and needs a moment beyond it to stop in good order; any other is stopped at the limit. `about` is
    text that the question shows whole. `waits_for_person` says that the effect is a person's thinking, which no limit
    of time is for. `composed` runs in place of `effect` where there is one: it makes other calls, so that it takes no
    place among those that run at once, and no time of its own.
    """

    effect: Effect
    diffs: tuple[Diff, ...] = ()
    watches_time: bool = False
    waits_for_person: bool = False
    about: str = ""
    composed: Composed | None = None


class SessionTool(Protocol):
    """One tool bound to one session."""

    @property
    @abstractmethod
    def descriptor(self) -> ToolDescriptor:
        """What the model is offered."""
        ...

    @abstractmethod
    def title(self, arguments: JsonObject) -> str:
        """What a person reads on the card; total: arguments are not validated yet."""
        ...

    def denial(self, arguments: JsonObject) -> str:
        """The first words of a denial as the model reads it; total."""
        del arguments
        return f"Permission denied to use {self.descriptor.name}"

    def paths(self, arguments: JsonObject) -> tuple[str, ...]:
        """The paths that the call names, by the roles of the descriptor unless a tool knows better; total."""
        return self.descriptor.roles.paths(arguments)

    def command(self, arguments: JsonObject, context: CallContext) -> Command | None:
        """The program or shell line that the call would run; None where it runs none, or that cannot be told.

        Total: arguments are not validated yet. A tool that takes a command counts as not understood where it is None.
        """
        roles = self.descriptor.roles
        if Role.COMMAND not in roles:
            return None
        return roles.command(arguments, tuple(where.path for where in context.locations), context.cwd)

    def sent(self, arguments: JsonObject) -> JsonObject:
        """The arguments as they would be sent, which is what a person is shown; total."""
        return arguments

    @abstractmethod
    async def prepare(self, arguments: JsonObject, context: CallContext) -> PreparedCall:
        """Read what is needed to show what would happen. Raises `ToldToModel` where the call cannot work."""
        ...


class Lifecycle(ABC):
    """A `SessionTool` that also needs setting up and taking down derives from this (S2-02, S2-06, S2-07)."""

    @abstractmethod
    async def initialise(self) -> None:
        """Called once, before the first effect, within that call's time. Raises `ToldToModel` where it fails."""
        ...

    @abstractmethod
    async def dispose(self) -> None:
        """Called once when the session ends, in bounded time, if `initialise` was begun; also after an error."""
        ...


class KnowsFiles(ABC):
    """A `SessionTool` that may know how much of files a call would read or write derives from this (S2-26)."""

    @abstractmethod
    def file_bytes(self, arguments: JsonObject, context: CallContext) -> int | None:
        """Bytes, by what the session knows already, without looking; None where it does not know. Total."""
        ...


Service = TypeVar("Service")


class Services(Protocol):
    """What a tool may take from its session: ports by their type. Lives as long as the session."""

    @abstractmethod
    def get(self, kind: type[Service]) -> Service:
        """The session's implementation of that port. Raises `LookupError` where it has none."""
        ...


class NoServices(Services):
    """A session without services: for tools that need none."""

    def get(self, kind: type[Service]) -> Service:
        raise LookupError(f"this session has no {kind.__name__}")
