"""The policy: whether a call may run, a person must be asked, or the call is refused (docs/interfaces.md).

`decide` is pure and total: the same request, policy and facts give the same decision, and it never raises. Its order
is built-in denials, deny rules, ask rules, allow rules, a quarantined definition, the mode. The strictest rule that
matches wins, and no rule wins for being more specific; the strictest command decides on a line. An ask rule, a
quarantine or a secret can only make a decision stricter.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator

from attrs import frozen

from punie.domain.permission.command_policy import LinePolicy, said
from punie.domain.permission.decisions import (
    Decision,
    Facts,
    Finding,
    PartDecision,
    PermissionRequest,
    Policy,
    default_verdict,
    strictest,
)
from punie.domain.permission.grants import approval_key
from punie.domain.permission.path_findings import (
    OWN_FILES_RULE,
    ROOTS_RULE,
    named_by,
    own_file,
    secret_finding,
    sensitive_change,
)
from punie.domain.permission.rules import Mode, Rule, Verdict
from punie.domain.tools.metadata import Permission
from punie.domain.tools.roles import Column, Role
from punie.domain.tools.tool import ToolDescriptor, ToolKind, ToolSource
from punie.domain.values.paths import Location, covers, may_touch_below, touches
from punie.domain.values.terminal import Box

QUARANTINE_RULE = "built-in:quarantine"

HARMLESS_KINDS = frozenset({ToolKind.READ, ToolKind.SEARCH, ToolKind.THINK})

_EFFECTS = {ToolKind.EDIT: "changes a file", ToolKind.EXECUTE: "runs a program or writes to the repository"}
_CHANGING_KINDS = frozenset({ToolKind.EDIT, ToolKind.DELETE, ToolKind.MOVE})
_ANSWERABLE = frozenset({ToolSource.IDE, ToolSource.PLUG_IN})
"""Sources that are believed about tools that only read: the user's own IDE, and packages that the user installed."""


def decide(request: PermissionRequest, policy: Policy, facts: Facts) -> Decision:
    """The decision on one call."""
    rules = tuple(rule for rule in policy.rules if rule.concerns(request.tool, policy.mode))
    call = _Call(request.tool, policy, rules, facts, _names_all(request), _asked_for(request, facts))
    is_command = facts.command is not None or Role.COMMAND in request.tool.roles
    line = LinePolicy(policy, rules, facts)
    parts = line.decide(facts.command) if is_command else ()
    found = call.denied() or (call.of_line(line, parts) if is_command else call.of_tool())
    key = approval_key(request.tool, request.arguments, facts.cwd) if found.verdict is Verdict.ASK else None
    return Decision(found.verdict, found.rule, found.reason, parts, key, call.box(found, parts))


def _asked_for(request: PermissionRequest, facts: Facts) -> tuple[str, ...]:
    # A parameter `path` counts as a path even for a tool without roles: such a path can only make a decision stricter.
    word = request.arguments.get("path")
    named = {*request.tool.roles.paths(request.arguments), *((word,) if isinstance(word, str) and word else ())}
    bases = (facts.cwd,) if facts.cwd else facts.bases
    return tuple(posixpath.normpath(posixpath.join(base, path)) for base in bases for path in sorted(named))


def _names_all(request: PermissionRequest) -> bool:
    """Whether the roles name all paths: a patch names files of its own, and a word without a role may name any."""
    given = {request.tool.roles.by_name.get(name) for name in request.arguments}
    return None not in given and Role.PATCH not in given


@frozen
class _Call:
    """One call with the rules about its tool; lives as long as the decision."""

    tool: ToolDescriptor
    policy: Policy
    rules: tuple[Rule, ...]
    facts: Facts
    names_all: bool
    """Whether no argument can name a path without a role for paths."""
    asked: tuple[str, ...] = ()
    """The paths as they were named, before links were followed: deny and ask rules look at them too."""

    def denied(self) -> Finding | None:
        """The built-in denials: a path outside, a change of Punie's own files."""
        outside = next((where.path for where in self.facts.locations if not where.inside), None)
        if outside is not None:
            return Finding(Verdict.DENY, ROOTS_RULE, f"{outside} is outside the session's directories")
        own = [where.path for where in self.facts.locations if own_file(where.path, self.policy)]
        if own and self._changes_files():
            return Finding(Verdict.DENY, OWN_FILES_RULE, f"{own[0]} belongs to Punie's own settings and state")
        return None

    def of_line(self, line: LinePolicy, parts: tuple[PartDecision, ...]) -> Finding:
        """The finding on all commands of a line together."""
        secrets = [] if line.allows_all else [secret_finding(where.path) for where in self._secrets()]
        return strictest(*self._cautions(), *parts, *secrets)

    def of_tool(self) -> Finding:
        """The finding on the call of any other tool."""
        deny = next((rule for rule in self.rules if rule.decision is Verdict.DENY and self._speaks(rule)), None)
        if deny is not None:
            return said(deny)
        rule = self._allowing()
        return strictest(
            *self._cautions(), *self._asked(), *self._touchy(), said(rule) if rule is not None else self._by_mode()
        )

    def box(self, found: Finding, parts: tuple[PartDecision, ...]) -> Box:
        """The box of a call that runs without a question: the widest that one of its commands needs."""
        if found.verdict is not Verdict.ALLOW or not self.facts.boxed:
            return Box.NONE
        if parts:
            return max((part.box for part in parts), key=lambda box: box.width)
        if self.tool.kind is not ToolKind.EXECUTE or self.tool.source is not ToolSource.BUILT_IN:
            return Box.NONE
        rule = self._allowing()
        return Box.WORK if rule is None or rule.boxed else Box.NONE

    def _cautions(self) -> Iterator[Finding]:
        name = self.tool.name
        if self.facts.quarantined:
            yield Finding(Verdict.ASK, QUARANTINE_RULE, f"{name} is not what it was when it was approved")
        if self.tool.details.requires_confirmation:
            yield Finding(Verdict.ASK, "built-in:tool", f"{name} says that each call of it must be confirmed")
        if _switches_mode(self.tool):
            yield Finding(Verdict.ASK, "built-in:mode", "the agent asks to do more than look from now on")

    def _asked(self) -> Iterator[Finding]:
        for rule in self.rules:
            if rule.decision is Verdict.ASK and self._speaks(rule):
                yield said(rule)
            elif not rule.allows and self._may_speak(rule):
                yield Finding(Verdict.ASK, f"rule:{rule.id}", f"it may show {rule.path}, which a rule speaks of")

    def _touchy(self) -> Iterator[Finding]:
        """Questions about secrets and files that other programs run, unless an allow rule names them."""
        for where in self._secrets():
            if not self._named(where):
                yield secret_finding(where.path)
        if self._changes_files():
            for where in self.facts.locations:
                found = sensitive_change(where.path)
                if found is not None and not self._named(where):
                    yield found

    def _allowing(self) -> Rule | None:
        return next((rule for rule in self.rules if rule.allows and self._covers(rule)), None)

    def _by_mode(self) -> Finding:
        mode, column = self.policy.mode, _column(self.tool)
        if column is Column.EDIT and not self._places_known():
            column = Column.OTHER_TOOL
        verdict = default_verdict(mode, column)
        return Finding(verdict, f"mode:{mode.value}", _reason(self.tool, column, verdict, mode))

    def _speaks(self, rule: Rule) -> bool:
        if rule.command is not None:
            return False
        places = self._places() if rule.allows else (*self._places(), *self.asked)
        return rule.path is None or any(touches(rule.path, path, self.facts.bases) for path in places)

    def _may_speak(self, rule: Rule) -> bool:
        if rule.command is not None or rule.path is None or Role.PATH_BELOW not in self.tool.roles:
            return False
        pattern = rule.path
        return any(may_touch_below(pattern, path, self.facts.bases) for path in self._places())

    def _covers(self, rule: Rule) -> bool:
        if rule.command is not None:
            return False
        if rule.path is None:
            return True
        pattern, places = rule.path, self._places()
        return self._places_known() and bool(places) and all(covers(pattern, path, self.facts.bases) for path in places)

    def _named(self, where: Location) -> bool:
        return any(rule.allows and named_by(rule, where.path, self.facts) for rule in self.rules)

    def _secrets(self) -> Iterator[Location]:
        return (where for where in self.facts.locations if where.secret)

    def _places(self) -> tuple[str, ...]:
        """The paths of the call; without any, a tool that goes through folders goes through the session's own."""
        located = tuple(where.path for where in self.facts.locations)
        return located or (self.facts.bases if Role.PATH_BELOW in self.tool.roles else ())

    def _places_known(self) -> bool:
        """Whether the call can touch no path but those that were located."""
        if self.tool.source is ToolSource.BUILT_IN or self.tool.column is not Column.EDIT:
            return True
        return bool(self.facts.locations) and self.names_all

    def _changes_files(self) -> bool:
        return self.tool.roles.changes_files or self.tool.kind in _CHANGING_KINDS


def _column(tool: ToolDescriptor) -> Column:
    if tool.source is ToolSource.PIPELINE:
        return Column.READ  # it does nothing but make calls, which are decided one by one
    built_in = tool.source is ToolSource.BUILT_IN
    edits = tool.column is Column.EDIT
    if edits and (built_in or (tool.source in _ANSWERABLE and tool.kind is ToolKind.EDIT)):
        return Column.EDIT
    if tool.requires_permission:
        return Column.OTHER_TOOL
    if built_in:
        return tool.column or Column.OTHER_COMMAND
    return Column.READ if tool.source in _ANSWERABLE and _harmless(tool) else Column.OTHER_TOOL


def _switches_mode(tool: ToolDescriptor) -> bool:
    """Whether the tool is Punie's own way out of read-only, which a person has to agree to in every mode."""
    return tool.source is ToolSource.BUILT_IN and tool.kind is ToolKind.SWITCH_MODE


def _harmless(tool: ToolDescriptor) -> bool:
    """Whether a tool only looks, by everything that its definition says."""
    only_reads = tool.details.required_permissions in Permission.READ
    return tool.kind in HARMLESS_KINDS and not tool.destructive and only_reads


def _reason(tool: ToolDescriptor, column: Column, verdict: Verdict, mode: Mode) -> str:
    does = _does(tool, column)
    if column is Column.READ or verdict is Verdict.ASK:
        return does
    if verdict is Verdict.ALLOW:
        return f"{does}, which the mode {mode.value} allows"
    return f"{does}, and the mode {mode.value} lets nothing run that does more than look"


def _does(tool: ToolDescriptor, column: Column) -> str:
    if tool.requires_permission:
        return f"{tool.name} says that it requires permission"
    built_in = tool.source is ToolSource.BUILT_IN
    if tool.source is ToolSource.PIPELINE:
        return f"{tool.name} only makes calls that are decided one by one"
    if column is Column.READ:
        return f"{tool.name} " + ("has no effect outside the session" if built_in else "only reads, as its kind says")
    if column is Column.EDIT or built_in:
        return f"{tool.name} {_EFFECTS.get(tool.kind, 'has an effect')}"
    return f"{tool.name} is served by the {tool.source.value} and may have effects"
