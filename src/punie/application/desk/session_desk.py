"""What the calls of a session share: who is asked, what is known and was granted, and how it went (S2-24 to S2-37)."""

from __future__ import annotations

import logging
from collections.abc import Mapping

import anyio
from attrs import define, evolve, field

from punie.application.desk.call import CallRequest
from punie.application.desk.estimate import estimated, expected_s
from punie.application.desk.lifetimes import ToolLifetimes
from punie.application.desk.permission import LeaveToAct
from punie.application.desk.progress_pace import ProgressPace
from punie.application.desk.running import CallUnderWay, RunningCalls
from punie.application.desk.statistics import CallStatistics
from punie.application.offer.offered import Elsewhere, Nowhere, OfferedTools
from punie.application.offer.toolbox import Toolbox
from punie.application.tools.session_tool import CallContext, SessionTool
from punie.domain.errors import ArgumentsRefusedError, ToldToModel
from punie.domain.permission.flow import Allowed
from punie.domain.session.records import CallRecord
from punie.domain.tools.disclosure import DisclosurePolicy
from punie.domain.tools.execution import ResourceEstimate
from punie.domain.tools.limits import Limits
from punie.domain.tools.tool import ToolCall, ToolResult, ToolSource
from punie.domain.values.display import one_line
from punie.domain.values.json_value import EMPTY_OBJECT, JsonValue, json_text, utf8_size
from punie.domain.values.paths import Location
from punie.ports.engine import EventSink
from punie.ports.machine import Clock
from punie.ports.sessions import UsageLedger
from punie.ports.tools import ArgumentValidator
from punie.ports.workspace import OutputStore, PathGuard


@define
class ToolDesk:
    """The desk of one session; lives as long as it and remembers how its calls went."""

    session_id: str
    cwd: str
    roots: tuple[str, ...]
    toolbox: Toolbox
    guard: PathGuard
    validator: ArgumentValidator
    leave: LeaveToAct
    events: EventSink
    clock: Clock
    limits: Limits
    outputs: OutputStore
    ledger: UsageLedger
    log: logging.Logger
    disclosure: DisclosurePolicy = field(factory=DisclosurePolicy, kw_only=True)
    elsewhere: Elsewhere = field(factory=Nowhere, kw_only=True)
    offered: OfferedTools = field(init=False)
    running: RunningCalls = field(init=False)
    pace: ProgressPace = field(init=False)
    lifetimes: ToolLifetimes = field(init=False)
    statistics: CallStatistics = field(factory=CallStatistics, init=False)
    places: anyio.Semaphore = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.offered = OfferedTools(self.toolbox, self.disclosure, self.elsewhere)
        self.running = RunningCalls(self.clock)
        self.pace = ProgressPace(self.clock)
        self.lifetimes = ToolLifetimes(self.log)
        self.places = anyio.Semaphore(self.limits.concurrent_calls, fast_acquire=True)

    async def validate(self, call: ToolCall) -> tuple[str, ...]:
        """What would keep the call from running, or from running unasked; empty where nothing would (S2-25)."""
        try:
            request = await self.request(call, self.toolbox.find(call.name), json_text(call.arguments))
            request.check_arguments(self.validator)
            request.check_resources()
        except ArgumentsRefusedError as error:
            return error.problems
        except ToldToModel as error:
            return (str(error),)
        facts = await self.leave.facts(request)
        decision = self.leave.decide(request, facts)
        if isinstance(await self.leave.flow(request, facts, decision), Allowed):
            return ()
        return (f"{call.name} lacks permission: {decision.reason}.",)

    async def estimate(self, tool: str, arguments: JsonValue = EMPTY_OBJECT) -> ResourceEstimate | None:
        """What a call will probably take; None where nothing is known of it, or there is no such tool (S2-26)."""
        try:
            request = await self.request(ToolCall("", tool, arguments), self.toolbox.find(tool), json_text(arguments))
        except ToldToModel:
            return None
        return estimated(request, self.statistics)

    async def request(
        self, call: ToolCall, tool: SessionTool, arguments_json: str, *, call_id: str = "", turn_id: str = ""
    ) -> CallRequest:
        """The call with everything known of it before it is checked: bounds, and where its paths lead."""
        arguments = call.arguments if isinstance(call.arguments, Mapping) else EMPTY_OBJECT
        located = [await self._locate(tool, path) for path in tool.paths(arguments)]
        limits = self.limits.of(call.name, expected_s(tool.descriptor, utf8_size(arguments_json), self.statistics))
        context = CallContext(
            call_id, turn_id, self.cwd, limits.time_s, tuple(located), limits.memory_mb, self.session_id
        )
        return CallRequest(call, tool, arguments, arguments_json, context, limits)

    async def _locate(self, tool: SessionTool, path: str) -> Location:
        where = await self.guard.locate(path)
        if where.inside or not self.outputs.holds(where.path):
            return where
        descriptor = tool.descriptor
        reads = descriptor.name == "read_file" and descriptor.source is ToolSource.BUILT_IN
        return evolve(where, inside=True) if reads else where

    def count(self, under_way: CallUnderWay, result: ToolResult) -> None:
        """A call ended: it goes into the statistics and the ledger, once."""
        elapsed_s = self.clock.monotonic_s() - under_way.started_s - under_way.waited_s
        tool = under_way.tool
        record = CallRecord(
            session_id=self.session_id,
            turn_id=under_way.turn_id,
            correlation_id=under_way.card.call_id,
            tool=one_line(under_way.call.name, 80),
            source="unknown" if tool is None else tool.descriptor.source.value,
            outcome=result.outcome,
            code=result.code,
            started_at=under_way.started_at,
            elapsed_ms=max(0.0, elapsed_s * 1000),
            waited_ms=under_way.waited_s * 1000,
            bytes_in=utf8_size(under_way.arguments_json),
            bytes_out=utf8_size(result.text),
        )
        self.statistics.add(record, known=tool is not None, violated=under_way.violated)
        self.ledger.record_call(record)
        self.log.debug(
            "call %s of %s: %s in %.1f ms",
            record.correlation_id, record.tool, record.outcome.value, record.elapsed_ms,
        )  # fmt: skip

    async def aclose(self) -> None:
        """Take down what tools set up; the session ends."""
        await self.lifetimes.dispose()
