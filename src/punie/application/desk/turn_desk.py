"""The only door to any effect (DESIGN.md section 3, ruling R-07).

Every call of every engine goes through here, whoever serves the tool: find, enabled, validate, decide, ask, resources,
time, set up, run, cut, count, report. An engine never runs a tool and never asks leave.
"""

from __future__ import annotations

import contextlib
import uuid
from typing import cast

import anyio
from attrs import define, evolve, field

from punie.application.desk.call import CallRequest
from punie.application.desk.card import CallCard
from punie.application.desk.loop_guard import LoopGuard
from punie.application.desk.output_limits import OutputLimits
from punie.application.desk.permission import Leave
from punie.application.desk.request_watch import RequestWatch
from punie.application.desk.running import CallUnderWay
from punie.application.desk.session_desk import ToolDesk
from punie.application.tools.composition import Composition
from punie.application.tools.session_tool import PreparedCall
from punie.application.tools.wording import line_of
from punie.domain.errors import (
    ArgumentsRefusedError,
    InternalFault,
    LeaseLostError,
    OutsideWorkspaceError,
    SessionStoreError,
    ToldToModel,
    ToolDisabledError,
)
from punie.domain.permission.decisions import Decision, Facts
from punie.domain.permission.flow import Asking, Denied
from punie.domain.permission.modes import AnsweredBy, Verdict
from punie.domain.permission.path_findings import ROOTS_RULE
from punie.domain.session.events import PermissionAnswered, PermissionAsked, PermissionSettled, SecurityViolation
from punie.domain.tools.catalog import ToolCatalog
from punie.domain.tools.execution import Severity
from punie.domain.tools.tool import ToolCall, ToolKind, ToolResult
from punie.domain.values.display import display_exact, one_line
from punie.domain.values.first_change import first_changed_line
from punie.domain.values.json_value import json_text
from punie.ports.engine import ToolDoor

END_LIMIT_S = 1.0
"""How long a slow client may hold up the last word on a cancelled call."""

STOP_GRACE_S = 5.0
"""Beyond a call's time limit: what a tool that watches its own limit gets for stopping in good order."""


class _TurnOverError(Exception):
    """The turn ended while a call was on its way: it goes no further."""


@define
class TurnDesk(ToolDoor):
    """The desk as one turn's engine sees it; lives as long as the turn.

    After `close` or `cancel` no effect starts any more, whatever the engine still does.
    """

    desk: ToolDesk
    turn_id: str
    _closed: bool = field(default=False, init=False)
    requests: RequestWatch = field(init=False)
    _loops: LoopGuard = field(factory=LoopGuard, init=False)
    _under_way: dict[str, CallCard] = field(factory=dict[str, CallCard], init=False)
    _idle: anyio.Event = field(factory=anyio.Event, init=False)

    def __attrs_post_init__(self) -> None:
        self.requests = RequestWatch(self.desk.clock)

    async def offered(self) -> ToolCatalog:
        self.requests.begin()
        return await self.desk.offered.current()

    async def call(self, call: ToolCall) -> ToolResult:
        return await self._call(call, None)

    async def _call(self, call: ToolCall, composition: Composition | None) -> ToolResult:
        under_way = self._enter(call, composition)
        result = ToolResult.cancelled()
        try:
            with under_way.scope:
                result = await self._guarded(under_way)
            if under_way.scope.cancelled_caught:
                result = under_way.cut_short()
        finally:
            with anyio.move_on_after(END_LIMIT_S, shield=True):
                await under_way.card.end(result)
            self._leave(under_way, under_way.card.result or result)
        return result

    def cancel(self) -> None:
        """Let nothing start any more; what runs is stopped by whoever cancels the turn's scope."""
        self._closed = True

    async def close(self) -> None:
        """The turn is over: wait a moment for calls that are being cancelled, then end their cards for them."""
        self._closed = True
        with anyio.move_on_after(END_LIMIT_S, shield=True):
            while self._under_way:
                await self._idle.wait()
        for card in list(self._under_way.values()):
            with anyio.move_on_after(END_LIMIT_S, shield=True):
                await card.end(ToolResult.cancelled())

    def _enter(self, call: ToolCall, composition: Composition | None) -> CallUnderWay:
        desk = self.desk
        card = CallCard(f"call_{uuid.uuid4().hex}", call.name, desk.events, desk.pace)
        arguments_json = json_text(call.arguments)
        under_way = CallUnderWay(
            call, self.turn_id, card, arguments_json, desk.clock.epoch_s(), desk.clock.monotonic_s(), composition
        )
        desk.running.enter(under_way)
        self.requests.interrupt()
        self._under_way[card.call_id] = card
        return under_way

    def _leave(self, under_way: CallUnderWay, result: ToolResult) -> None:
        kind = ToolKind.OTHER if under_way.tool is None else under_way.tool.descriptor.kind
        self._loops.note(under_way.call.name, kind, under_way.arguments_json, result)
        self.desk.running.leave(under_way)
        self.desk.count(under_way, result)
        self.requests.interrupt()
        del self._under_way[under_way.card.call_id]
        if not self._under_way:
            self._idle.set()
            self._idle = anyio.Event()

    async def _guarded(self, under_way: CallUnderWay) -> ToolResult:
        """The call's result, whatever happens to it: only a cancellation gets past here."""
        try:
            return await self._through(under_way)
        except ToldToModel as error:
            if isinstance(error, ArgumentsRefusedError):
                self.desk.offered.pick((error.name,))  # to mend the call the model must see the schema
            return ToolResult.failure(str(error), code=error.code)
        except _TurnOverError:
            return ToolResult.cancelled("The turn ended before this ran; nothing was done.")
        except (SessionStoreError, LeaseLostError) as error:  # nothing runs that the session's log does not know of
            return ToolResult.failure(f"{error} Nothing was done.", code=error.code)
        except Exception:  # the turn goes on: one call that breaks is that call's failure (S2-80, DESIGN.md section 8)
            fault = InternalFault(uuid.uuid4().hex[:12])
            self.desk.log.exception("reference %s: the call of %s broke", fault.reference, under_way.call.name)
            return ToolResult.failure(str(fault), code=fault.code)

    async def _through(self, under_way: CallUnderWay) -> ToolResult:
        """The stages in their order; what refuses raises, or gives the result."""
        desk, card = self.desk, under_way.card
        request = await self._announced(under_way)
        repeated = self._loops.refusal(under_way.call.name, under_way.arguments_json)
        if repeated is not None:
            return repeated
        request.check_arguments(desk.validator)
        facts = await desk.leave.facts(request)
        policy, decision = desk.leave.policy, desk.leave.decide(request, facts)
        if decision.rule == ROOTS_RULE and decision.verdict is Verdict.DENY:
            return await self._outside(under_way, request, decision)
        self._check_open()
        under_way.hurry(request.limits.time_s)
        prepared = await request.prepared(decision)
        under_way.unhurried()
        self._check_open()
        leave = await self._leave_for(under_way, request, facts, decision, prepared)
        if isinstance(leave.flow, Denied):
            return _denial(request, leave.flow)
        self._check_open()
        request.check_resources()
        # A composed call waits for its own calls: holding a place it might wait for ever.
        async with contextlib.nullcontext() if prepared.composed is not None else desk.places:
            self._check_open()
            await card.start(*_edited(request, prepared))
            self._check_open()
            if desk.leave.policy is not policy:
                withdrawn = await self._withdrawn(under_way, request, facts)
                if withdrawn is not None:
                    return withdrawn
            result = await self._effect(under_way, request, prepared)
        return await OutputLimits(desk.outputs).limited(card.call_id, request, result)

    def _check_open(self) -> None:
        if self._closed:
            raise _TurnOverError

    async def _announced(self, under_way: CallUnderWay) -> CallRequest:
        call, card = under_way.call, under_way.card
        try:
            tool = under_way.tool = self.desk.toolbox.find(call.name)
        except ToldToModel as error:
            title = one_line(call.name, 80) or "(a tool without a name)"
            await card.announce(title=title, kind=ToolKind.OTHER, raw_input=call.arguments)
            if isinstance(error, ToolDisabledError):
                await self._violated(under_way, "disabled", Severity.MEDIUM, str(error))
            raise
        request = await self.desk.request(
            call, tool, under_way.arguments_json, call_id=card.call_id, turn_id=self.turn_id
        )
        under_way.limit_s = request.limits.time_s
        await card.announce(
            title=display_exact(tool.title(request.arguments)),
            kind=tool.descriptor.kind,
            locations=tuple(where.path for where in request.context.locations),
            raw_input=call.arguments,
            line=line_of(call.name, request.arguments),
        )
        return request

    async def _outside(self, under_way: CallUnderWay, request: CallRequest, decision: Decision) -> ToolResult:
        outside = next(where.path for where in request.context.locations if not where.inside)
        leave = Leave(Denied(decision.reason), AnsweredBy.POLICY, decision)
        await self._settled(request, leave)
        await self.desk.leave.close(request, Facts(), leave)
        await self._violated(under_way, decision.rule, Severity.HIGH, decision.reason)
        refused = OutsideWorkspaceError(outside, self.desk.roots)
        return evolve(ToolResult.denied(display_exact(str(refused))), code=refused.code)

    async def _leave_for(
        self, under_way: CallUnderWay, request: CallRequest, facts: Facts, decision: Decision, prepared: PreparedCall
    ) -> Leave:
        """Whether the call may run; its time stands still while a person thinks. The answer is in the audit trail."""
        desk = self.desk
        flow = await desk.leave.flow(request, facts, decision)
        if isinstance(flow, Asking):
            asked_s = desk.clock.monotonic_s()
            await self._asked(request, flow)
            try:
                leave = await desk.leave.ask(request, facts, decision, flow, prepared)
            finally:
                under_way.waited_s += desk.clock.monotonic_s() - asked_s
        else:
            answered_by = AnsweredBy.GRANT if decision.verdict is Verdict.ASK else AnsweredBy.POLICY
            leave = Leave(flow, answered_by, decision)
        if isinstance(flow, Asking):
            await self._answered(request, leave)
        if decision.verdict is not Verdict.ALLOW:
            await self._settled(request, leave)
        if leave.decision.verdict is Verdict.DENY:
            await self._violated(under_way, leave.decision.rule, Severity.MEDIUM, leave.decision.reason)
        await desk.leave.close(request, facts, leave)
        return leave

    async def _withdrawn(self, under_way: CallUnderWay, request: CallRequest, facts: Facts) -> ToolResult | None:
        """The mode changed while the call waited: leave that the new one would never give is taken back."""
        now = self.desk.leave.decide(request, facts)
        if now.verdict is not Verdict.DENY:
            return None
        denied = Denied(now.reason)
        leave = Leave(denied, AnsweredBy.POLICY, now)
        await self._settled(request, leave)
        await self._violated(under_way, now.rule, Severity.MEDIUM, now.reason)
        await self.desk.leave.close(request, facts, leave)
        return _denial(request, denied)

    async def _asked(self, request: CallRequest, asking: Asking) -> None:
        options = tuple(option.name for option in asking.options)
        await self.desk.events.emit(PermissionAsked(request.context.call_id, display_exact(asking.reason), options))

    async def _answered(self, request: CallRequest, leave: Leave) -> None:
        verdict, reason = _settlement(leave)
        answered = PermissionAnswered(request.context.call_id, verdict, reason, leave.answered_by, leave.choice)
        await self.desk.events.emit(answered)

    async def _settled(self, request: CallRequest, leave: Leave) -> None:
        verdict, reason = _settlement(leave)
        await self.desk.events.emit(PermissionSettled(request.context.call_id, request.call.name, verdict, reason))

    async def _violated(self, under_way: CallUnderWay, rule: str, severity: Severity, detail: str) -> None:
        under_way.violated = True
        name = one_line(under_way.call.name, 80)
        self.desk.log.warning("%s tried what is forbidden (%s): %s", name, rule, one_line(detail, 400))
        await self.desk.events.emit(
            SecurityViolation(under_way.card.call_id, under_way.call.name, rule, severity, detail)
        )

    async def _effect(self, under_way: CallUnderWay, request: CallRequest, prepared: PreparedCall) -> ToolResult:
        if prepared.composed is not None:
            return await prepared.composed(self._composition(under_way), under_way.card)
        if not prepared.waits_for_person:
            under_way.hurry(request.limits.time_s + (STOP_GRACE_S if prepared.watches_time else 0.0))
        await self.desk.lifetimes.ready(request.tool)
        began_s = self.desk.clock.monotonic_s()
        result = cast("object", await prepared.effect(under_way.card))  # somebody else's tool may give anything
        if prepared.waits_for_person:
            under_way.waited_s += self.desk.clock.monotonic_s() - began_s
        under_way.unhurried()
        if isinstance(result, ToolResult):
            return result
        raise TypeError(f"{request.call.name} gave a {type(result).__name__} instead of a result")

    def _composition(self, under_way: CallUnderWay) -> Composition:
        """How a composed call makes its own: they stop with it, and with the turn, like any."""
        name, outer = under_way.call.name, under_way.composition
        return Composition(name, self._call) if outer is None else outer.deeper(name)


def _edited(request: CallRequest, prepared: PreparedCall) -> tuple[tuple[str, ...] | None, int | None]:
    """The places of the call again, with the line at which its edit begins; None twice where it is none."""
    line = first_changed_line(prepared.diffs[0]) if prepared.diffs else None
    if line is None:
        return None, None
    first = prepared.diffs[0].path
    others = (where.path for where in request.context.locations if where.path != first)
    return (first, *others), line


def _settlement(leave: Leave) -> tuple[Verdict, str]:
    """What it came to, and why."""
    if isinstance(leave.flow, Denied):
        return Verdict.DENY, leave.flow.reason
    return Verdict.ALLOW, leave.decision.reason


def _denial(request: CallRequest, denied: Denied) -> ToolResult:
    said = f"{request.tool.denial(request.arguments)}: {denied.reason}. Nothing was done."
    return ToolResult.denied(display_exact(said))
