"""Leave to act: what one session allows, whom it asks, and what it remembers of the answers (issue 4).

The desk comes here with every call that is well formed: facts, decision, question, and a row in the audit trail for
what it came to. Nothing here has an effect but on what Punie itself remembers.
"""

from __future__ import annotations

from attrs import define, evolve, field, frozen

from punie.application.desk.call import CallRequest
from punie.application.desk.command_review import CommandReview
from punie.application.desk.questions import OpenQuestions
from punie.application.tools.session_tool import PreparedCall
from punie.domain.permission.audit import DecisionRecord
from punie.domain.permission.decisions import Decision, Facts, PermissionRequest, Policy
from punie.domain.permission.flow import (
    Allowed,
    Asking,
    Denied,
    Flow,
    PermissionOutcome,
    PermissionQuestion,
    Selected,
    grant_scope,
    open_flow,
    would_store,
)
from punie.domain.permission.grants import GrantScope, StoredGrant, ToolPin, definition_hash, digest, text_digest
from punie.domain.permission.modes import AnsweredBy, Mode, Verdict
from punie.domain.permission.policy import HARMLESS_KINDS, decide
from punie.domain.tools.tool import ToolDescriptor, ToolSource
from punie.domain.values.display import display_exact, one_line
from punie.ports.machine import Clock
from punie.ports.permission import AuditTrail, GrantStore, PinName, ToolPins
from punie.ports.workspace import PathGuard

_OUR_OWN = frozenset({ToolSource.BUILT_IN, ToolSource.PIPELINE})
"""Tools whose definition is not pinned: what a pipeline does is decided call by call."""


@frozen
class Approvals:
    """What outlives a session: grants, approved definitions, the audit trail; lives as long as the process."""

    grants: GrantStore
    pins: ToolPins
    audit: AuditTrail


@frozen
class Leave:
    """What came of asking for leave: `flow` says whether the call may run, `answered_by` who said so.

    `choice` is the option that a person picked, in the question's words.
    """

    flow: Allowed | Denied
    answered_by: AnsweredBy
    decision: Decision
    choice: str | None = None


@define
class LeaveToAct:
    """The permission engine of one session; lives as long as it."""

    session_id: str
    cwd: str
    roots: tuple[str, ...]
    policy: Policy
    review: CommandReview
    guard: PathGuard
    approvals: Approvals
    questions: OpenQuestions
    clock: Clock
    _granted: set[GrantScope] = field(factory=set[GrantScope], init=False)
    _pinned: dict[PinName, str] | None = field(default=None, init=False)
    _pins_readable: bool = field(default=True, init=False)
    _bases: tuple[str, ...] = field(default=(), init=False)
    _hashes: dict[str, tuple[ToolDescriptor, str]] = field(factory=dict, init=False)

    def switch(self, mode: Mode) -> None:
        """From now on decide in that mode; questions that are open are decided again when they are answered."""
        self.policy = evolve(self.policy, mode=mode)

    async def facts(self, request: CallRequest) -> Facts:
        """What the policy decides on: where the paths lead, what would run, whether the tool is what was approved."""
        command = request.tool.command(request.arguments, request.context)
        return Facts(
            locations=request.context.locations,
            command=None if command is None else await self.review.report(command),
            cwd=self.cwd,
            roots=await self._followed_roots(),
            quarantined=await self._changed(request.tool.descriptor),
        )

    def decide(self, request: CallRequest, facts: Facts) -> Decision:
        """What the policy says of the call, in the mode of this moment."""
        return decide(PermissionRequest(request.tool.descriptor, request.arguments), self.policy, facts)

    async def flow(self, request: CallRequest, facts: Facts, decision: Decision) -> Flow:
        """Where the call stands before anybody is asked: a grant may have answered already."""
        if decision.verdict is not Verdict.ASK:
            return open_flow(decision, None, frozenset())
        scope = grant_scope(request.tool.descriptor, request.arguments, facts, self.cwd)
        if scope is not None and scope.stored is not None and not await self.approvals.grants.usable():
            scope = evolve(scope, stored=None)
        stored = await self.approvals.grants.active(self.clock.epoch_s())
        return open_flow(decision, scope, frozenset((*self._granted, *(grant.covers for grant in stored))))

    async def ask(
        self, request: CallRequest, facts: Facts, decision: Decision, asking: Asking, prepared: PreparedCall
    ) -> Leave:
        """Put the question, and take the answer for what it is worth in the mode that holds by then."""
        question = self._question(request, decision, asking, prepared)
        outcome = await self._answer(request, decision, question)
        choice = _words_of(outcome, question)
        answered_by = AnsweredBy.PERSON if isinstance(outcome, Selected) else AnsweredBy.NOBODY
        settled = asking.settle(outcome)
        if isinstance(settled, Allowed):
            now = self.decide(request, facts)
            if now.verdict is Verdict.DENY:
                return Leave(Denied(now.reason), AnsweredBy.POLICY, now, choice)
            moved = await self._moved(request, facts)
            if moved is not None:
                reason = f"{moved} leads elsewhere since the question was put; look again"
                return Leave(Denied(reason), AnsweredBy.POLICY, decision, choice)
        return Leave(settled, answered_by, decision, choice)

    def _question(
        self, request: CallRequest, decision: Decision, asking: Asking, prepared: PreparedCall
    ) -> PermissionQuestion:
        command = request.tool.command(request.arguments, request.context)
        return PermissionQuestion(
            session_id=self.session_id,
            call_id=request.context.call_id,
            tool=request.call.name,
            title=display_exact(request.tool.title(request.arguments)),
            kind=request.tool.descriptor.kind,
            reason=display_exact(asking.reason),
            options=asking.options,
            locations=tuple(where.path for where in request.context.locations),
            diffs=prepared.diffs,
            raw_input=request.tool.sent(request.arguments),
            would_store=would_store(asking.scope),
            rule=display_exact(decision.rule),
            about=prepared.about,
            directory="" if command is None else command.cwd,
        )

    async def _answer(
        self, request: CallRequest, decision: Decision, question: PermissionQuestion
    ) -> PermissionOutcome:
        """What is answered; a call that is given up before that was not allowed, and the trail says so."""
        answered = False
        try:
            outcome = await self.questions.ask(_same(decision, question), question)
            answered = True
        finally:
            if not answered:
                self._record(request, Leave(Denied("it was given up unanswered"), AnsweredBy.NOBODY, decision))
        return outcome

    async def close(self, request: CallRequest, facts: Facts, leave: Leave) -> None:
        """Write down what it came to; where leave was given, remember it before the effect begins.

        Grants last as long as the answer said; of a stranger's tool the definition that was approved is kept.
        """
        self._record(request, leave)
        if not isinstance(leave.flow, Allowed):
            return
        if leave.answered_by is not AnsweredBy.POLICY or request.tool.descriptor.kind not in HARMLESS_KINDS:
            await self.approvals.audit.commit()
        grant = leave.flow.grant
        if grant is not None and not (leave.flow.lasting and await self._store(grant)):
            self._granted.add(grant)
        if not facts.quarantined or leave.answered_by is AnsweredBy.PERSON:
            await self._pin(request.tool.descriptor)

    def _record(self, request: CallRequest, leave: Leave) -> None:
        """A row of the audit trail."""
        allowed = isinstance(leave.flow, Allowed)
        tool = request.tool.descriptor
        self.approvals.audit.record(
            DecisionRecord(
                at=self.clock.epoch_s(),
                session_id=self.session_id,
                call_id=request.context.call_id,
                tool=request.call.name,
                source=tool.source.value,
                mode=self.policy.mode.value,
                verdict=Verdict.ALLOW if allowed else Verdict.DENY,
                rule=leave.decision.rule,
                reason=leave.decision.reason if isinstance(leave.flow, Allowed) else leave.flow.reason,
                answered_by=leave.answered_by,
                arguments_digest=text_digest(request.arguments_json),
                definition=self._definition(tool),
                title=one_line(request.tool.title(request.arguments)),
            )
        )

    async def _moved(self, request: CallRequest, facts: Facts) -> str | None:
        """The path that leads elsewhere than what a person was shown; None where all of them lead where they led."""
        for path, where in zip(request.tool.paths(request.arguments), facts.locations, strict=True):
            if (await self.guard.locate(path)).path != where.path:
                return path
        for use in () if facts.command is None else facts.command.paths:
            if use.where is not None and (await self.guard.locate(use.path)).path != use.where.path:
                return use.path
        return None

    async def _followed_roots(self) -> tuple[str, ...]:
        if not self._bases:
            self._bases = tuple([(await self.guard.locate(root)).path for root in self.roots])
        return self._bases

    async def _changed(self, tool: ToolDescriptor) -> bool:
        """Whether a stranger's tool is another one than a person, or its first use, approved here."""
        if tool.source in _OUR_OWN:
            return False
        pinned = (await self._pins()).get(_name(tool))
        if pinned is None:
            return not self._pins_readable  # nobody can tell: then it counts as changed
        return pinned != self._definition(tool)

    async def _pin(self, tool: ToolDescriptor) -> None:
        if tool.source in _OUR_OWN:
            return
        known, definition = await self._pins(), self._definition(tool)
        if known.get(_name(tool)) == definition:
            return
        known[_name(tool)] = definition
        source, server, name = _name(tool)
        await self.approvals.pins.pin(ToolPin(source, server, self.cwd, name, definition, self.clock.epoch_s()))

    def _definition(self, tool: ToolDescriptor) -> str:
        """The definition's digest, worked out once as long as it is the same object: it takes longer than deciding."""
        known = self._hashes.get(tool.name)
        if known is None or known[0] is not tool:
            known = self._hashes[tool.name] = (tool, definition_hash(tool))
        return known[1]

    async def _pins(self) -> dict[PinName, str]:
        """The definitions known here: those of the state, read once, and what this session approved since."""
        if self._pinned is None:
            found = await self.approvals.pins.pinned(self.cwd)
            self._pins_readable = found is not None
            self._pinned = dict(found or {})
        return self._pinned

    async def _store(self, grant: GrantScope) -> bool:
        now = self.clock.epoch_s()
        await self.approvals.grants.purge(now)
        return await self.approvals.grants.add(StoredGrant.of(grant, now))


def _name(tool: ToolDescriptor) -> PinName:
    return (tool.source.value, "", tool.name)


def _words_of(outcome: PermissionOutcome, question: PermissionQuestion) -> str | None:
    """The option that was picked, in the question's words; None where none was."""
    if not isinstance(outcome, Selected):
        return None
    return next((option.name for option in question.options if option.id == outcome.option_id), None)


def _same(decision: Decision, question: PermissionQuestion) -> str:
    """Equal for questions that a person could not tell apart: the same call, and the same change of the same text."""
    diffs = [[diff.path, diff.old_text, diff.new_text] for diff in question.diffs]
    return digest([decision.key, question.reason, [option.name for option in question.options], diffs])
