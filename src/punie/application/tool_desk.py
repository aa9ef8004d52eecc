"""The only door to any effect (DESIGN.md section 3, ruling R-07).

Every call of every engine goes through here, whoever serves the tool:
find -> enabled? -> validate -> decide -> ask -> run -> report. An engine never runs a tool and never asks leave.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Mapping

import anyio
from attrs import define, evolve, field, frozen

from punie.application.call_card import CallCard
from punie.application.session_tool import CallContext, PreparedCall, SessionTool
from punie.application.toolbox import Toolbox
from punie.domain.catalog import ToolCatalog
from punie.domain.display import display_exact, one_line
from punie.domain.errors import ArgumentsRefusedError, InternalFault, OutsideWorkspaceError, ToldToModel
from punie.domain.events import PermissionSettled
from punie.domain.execution import cut
from punie.domain.json_value import EMPTY_OBJECT, JsonObject, json_type
from punie.domain.limits import CallLimits, Limits
from punie.domain.permission import (
    Allowed,
    Asking,
    Denied,
    GrantScope,
    PermissionQuestion,
    grant_scope,
    open_flow,
)
from punie.domain.policy import Decision, Facts, Verdict, decide
from punie.domain.tool import ToolCall, ToolKind, ToolResult
from punie.ports.argument_validator import ArgumentValidator
from punie.ports.clock import Clock
from punie.ports.engine import ToolDoor
from punie.ports.event_sink import EventSink
from punie.ports.path_guard import PathGuard
from punie.ports.permission_broker import PermissionBroker
from punie.ports.tool_executor import CallProgress

END_LIMIT_S = 1.0
"""How long a slow client may hold up the last word on a cancelled call."""

STOP_GRACE_S = 5.0
"""Beyond a call's time limit: what a tool that watches its own limit gets for stopping in good order."""


class _TurnOverError(Exception):
    """The turn ended while a call was on its way: it goes no further."""


@define
class ToolDesk:
    """The desk of one session; lives as long as it and remembers what was granted for it."""

    session_id: str
    cwd: str
    roots: tuple[str, ...]
    toolbox: Toolbox
    guard: PathGuard
    validator: ArgumentValidator
    broker: PermissionBroker
    events: EventSink
    clock: Clock
    limits: Limits
    log: logging.Logger
    _granted: set[GrantScope] = field(factory=set, init=False)

    @property
    def granted(self) -> frozenset[GrantScope]:
        """What may run unasked until the session ends."""
        return frozenset(self._granted)

    def remember(self, grant: GrantScope | None) -> None:
        """Keep a grant for this session."""
        if grant is not None:
            self._granted.add(grant)


@frozen
class _Request:
    """One call on its way through the desk, once its tool was found."""

    call: ToolCall
    tool: SessionTool
    arguments: JsonObject
    context: CallContext
    limits: CallLimits

    @property
    def facts(self) -> Facts:
        return Facts(self.context.locations)


@define
class TurnDesk(ToolDoor):
    """The desk as one turn's engine sees it; lives as long as the turn.

    After `close` or `cancel` no effect starts any more, whatever the engine still does.
    """

    desk: ToolDesk
    turn_id: str
    _closed: bool = field(default=False, init=False)
    _running: dict[str, CallCard] = field(factory=dict, init=False)
    _idle: anyio.Event = field(factory=anyio.Event, init=False)

    async def offered(self) -> ToolCatalog:
        return await self.desk.toolbox.current()

    async def call(self, call: ToolCall) -> ToolResult:
        card = CallCard(f"call_{uuid.uuid4().hex}", call.name, self.desk.events)
        self._running[card.call_id] = card
        started = self.desk.clock.monotonic_s()
        result = ToolResult.cancelled()
        try:
            result = await self._guarded(call, card)
        finally:
            with anyio.move_on_after(END_LIMIT_S, shield=True):
                await card.end(result)
            self._leave(card)
            elapsed_ms = (self.desk.clock.monotonic_s() - started) * 1000
            self.desk.log.debug(
                "call %s of %s: %s in %.1f ms", card.call_id, call.name, result.outcome.value, elapsed_ms
            )
        return result

    def cancel(self) -> None:
        """Let nothing start any more; what runs is stopped by whoever cancels the turn's scope."""
        self._closed = True

    async def close(self) -> None:
        """The turn is over: wait a moment for calls that are being cancelled, then end their cards for them."""
        self._closed = True
        with anyio.move_on_after(END_LIMIT_S, shield=True):
            while self._running:
                await self._idle.wait()
        for card in list(self._running.values()):
            with anyio.move_on_after(END_LIMIT_S, shield=True):
                await card.end(ToolResult.cancelled())

    def _leave(self, card: CallCard) -> None:
        del self._running[card.call_id]
        if not self._running:
            self._idle.set()
            self._idle = anyio.Event()

    async def _guarded(self, call: ToolCall, card: CallCard) -> ToolResult:
        """The call's result, whatever happens to it: only a cancellation gets past here."""
        try:
            return await self._through(call, card)
        except ToldToModel as error:
            return ToolResult.failure(str(error), code=error.code)
        except _TurnOverError:
            return ToolResult.cancelled("The turn ended before this ran; nothing was done.")
        except Exception:  # the turn goes on: one call that breaks is that call's failure (S2-80, DESIGN.md section 8)
            fault = InternalFault(uuid.uuid4().hex[:12])
            self.desk.log.exception("reference %s: the call of %s broke", fault.reference, call.name)
            return ToolResult.failure(str(fault), code=fault.code)

    async def _through(self, call: ToolCall, card: CallCard) -> ToolResult:
        request = await self._announced(call, card)
        self._validate(request)
        decision = decide(request.tool.descriptor, request.facts)
        if decision.rule == "roots":
            return await self._outside(request, decision)
        self._check_open()
        prepared = await _prepared(request, decision)
        self._check_open()
        denied = await self._refused(request, decision, prepared)
        if denied is not None:
            return ToolResult.denied(f"{request.tool.denial(request.arguments)}: {denied.reason}. Nothing was done.")
        self._check_open()
        await card.start()
        self._check_open()
        return _limited(await self._effect(request, prepared, card), request.limits)

    def _check_open(self) -> None:
        if self._closed:
            raise _TurnOverError

    async def _announced(self, call: ToolCall, card: CallCard) -> _Request:
        arguments = call.arguments if isinstance(call.arguments, Mapping) else EMPTY_OBJECT
        try:
            tool = self.desk.toolbox.find(call.name)
        except ToldToModel:
            title = one_line(call.name, 80) or "(a tool without a name)"
            await card.announce(title=title, kind=ToolKind.OTHER, raw_input=call.arguments)
            raise
        located = [await self.desk.guard.locate(path) for path in tool.paths(arguments)]
        await card.announce(
            title=display_exact(tool.title(arguments)),
            kind=tool.descriptor.kind,
            locations=tuple(where.path for where in located),
            raw_input=call.arguments,
        )
        limits = self.desk.limits.of(call.name)
        context = CallContext(card.call_id, self.turn_id, self.desk.cwd, limits.time_s, tuple(located))
        return _Request(call, tool, arguments, context, limits)

    def _validate(self, request: _Request) -> None:
        name = request.call.name
        if not isinstance(request.call.arguments, Mapping):
            raise ArgumentsRefusedError(name, (f"expected a JSON object, got {json_type(request.call.arguments)}",))
        problems = self.desk.validator.problems(request.tool.descriptor.parameters, request.arguments)
        if problems:
            raise ArgumentsRefusedError(name, problems)

    async def _outside(self, request: _Request, decision: Decision) -> ToolResult:
        outside = next(where.path for where in request.context.locations if not where.inside)
        await self._settled(request, Verdict.DENY, decision.reason)
        refused = OutsideWorkspaceError(outside, self.desk.roots)
        return evolve(ToolResult.denied(str(refused)), code=refused.code)

    async def _refused(self, request: _Request, decision: Decision, prepared: PreparedCall) -> Denied | None:
        scope = None
        if decision.verdict is Verdict.ASK:
            scope = grant_scope(request.tool.descriptor, request.arguments, request.facts, self.desk.cwd)
        flow = open_flow(decision, scope, self.desk.granted)
        if isinstance(flow, Asking):
            outcome = await self.desk.broker.ask(self._question(request, flow, prepared))
            flow = flow.settle(outcome)
            verdict = Verdict.ALLOW if isinstance(flow, Allowed) else Verdict.DENY
            await self._settled(request, verdict, flow.reason if isinstance(flow, Denied) else decision.reason)
        if isinstance(flow, Denied):
            return flow
        self.desk.remember(flow.grant)
        return None

    def _question(self, request: _Request, asking: Asking, prepared: PreparedCall) -> PermissionQuestion:
        return PermissionQuestion(
            session_id=self.desk.session_id,
            call_id=request.context.call_id,
            tool=request.call.name,
            title=display_exact(request.tool.title(request.arguments)),
            kind=request.tool.descriptor.kind,
            reason=display_exact(asking.reason),
            options=asking.options,
            locations=tuple(where.path for where in request.context.locations),
            diffs=prepared.diffs,
            raw_input=request.arguments,
        )

    async def _settled(self, request: _Request, verdict: Verdict, reason: str) -> None:
        await self.desk.events.emit(PermissionSettled(request.context.call_id, request.call.name, verdict, reason))

    async def _effect(self, request: _Request, prepared: PreparedCall, card: CallCard) -> ToolResult:
        grace_s = STOP_GRACE_S if prepared.watches_time else 0.0
        with anyio.move_on_after(request.limits.time_s + grace_s):
            return await prepared.effect(card)
        return ToolResult.failure(
            f"{request.call.name} was stopped: it took longer than {request.limits.time_s:g} s. Its effect may be "
            "partly there; look before you call it again.",
            code="timed_out",
        )


async def _prepared(request: _Request, decision: Decision) -> PreparedCall:
    """The call, ready to run. What goes wrong with a secret tells of its content: only who may read it hears that."""
    try:
        return await request.tool.prepare(request.arguments, request.context)
    except ToldToModel as error:
        if decision.rule != "secrets":
            raise
        refusal = error

    async def effect(_progress: CallProgress) -> ToolResult:
        raise refusal

    return PreparedCall(effect)


def _limited(result: ToolResult, limits: CallLimits) -> ToolResult:
    """The result with the model's text cut where it is over the limit."""
    text = result.text
    short = cut(text, limits.output_bytes)
    return result if short is text else evolve(result, for_model=short)
