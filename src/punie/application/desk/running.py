"""The calls of a session that have not ended yet: shown on request, and stopped one by one (S2-27, S2-28)."""

from __future__ import annotations

import math

import anyio
from attrs import define, field

from punie.application.desk.card import CallCard
from punie.application.tools.composition import Composition
from punie.application.tools.session_tool import SessionTool
from punie.domain.errors import TimedOutError
from punie.domain.tools.execution import RunningCall
from punie.domain.tools.tool import ToolCall, ToolResult
from punie.ports.machine import Clock


@define(eq=False)
class CallUnderWay:
    """One call on its way through the desk; lives until it ended.

    `scope` is around all of it, so that it can be stopped at any moment; its deadline is that of the stage the call is
    in. (A scope for each stage costs more than the rest of the desk.) `limit_s` is what its effect may take, once
    its tool is known. `waited_s` is a person's thinking. `composition` is that of the composed call that makes it.
    """

    call: ToolCall
    turn_id: str
    card: CallCard
    arguments_json: str
    started_at: float
    started_s: float
    composition: Composition | None = None
    scope: anyio.CancelScope = field(factory=anyio.CancelScope, init=False)
    stopped: bool = field(default=False, init=False)
    limit_s: float = field(default=0.0, init=False)
    waited_s: float = field(default=0.0, init=False)
    tool: SessionTool | None = field(default=None, init=False)
    violated: bool = field(default=False, init=False)

    def hurry(self, seconds: float) -> None:
        """From now on it has that long."""
        self.scope.deadline = anyio.current_time() + seconds

    def unhurried(self) -> None:
        """What comes now takes as long as it takes: a person thinks, or others go first."""
        self.scope.deadline = math.inf

    def cut_short(self) -> ToolResult:
        """What came of it, once its scope ended it: it was stopped, or its time was over."""
        if self.stopped:
            return ToolResult.cancelled("This call was stopped before it was done; its effect may be partly there.")
        late = TimedOutError(self.call.name, self.limit_s, begun=self.card.begun)
        return ToolResult.failure(str(late), code=late.code)

    def stop(self) -> None:
        """End this call alone, as soon as possible; its turn goes on."""
        self.stopped = True
        self.scope.cancel()


@define
class RunningCalls:
    """Which calls run, by the id of their card; lives as long as the session."""

    clock: Clock
    _calls: dict[str, CallUnderWay] = field(factory=dict[str, CallUnderWay], init=False)

    def enter(self, call: CallUnderWay) -> None:
        """A call came through the door."""
        self._calls[call.card.call_id] = call

    def leave(self, call: CallUnderWay) -> None:
        """It ended."""
        del self._calls[call.card.call_id]

    def all(self) -> tuple[RunningCall, ...]:
        """Those that run now, oldest first."""
        now_s = self.clock.monotonic_s()
        return tuple(
            RunningCall(
                call_id, call.turn_id, call.card.tool, call.started_at, max(0.0, (now_s - call.started_s) * 1000)
            )
            for call_id, call in self._calls.items()
        )

    def stop(self, correlation_id: str) -> int:
        """Stop the call of that id, or every call of the turn of that id; says how many there were to stop."""
        found = [
            call
            for call_id, call in self._calls.items()
            if correlation_id in {call_id, call.turn_id} and not call.stopped
        ]
        for call in found:
            call.stop()
        return len(found)
