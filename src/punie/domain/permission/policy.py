"""Whether a call may run, a person must be asked, or it is refused (ruling R-16, INTERFACES.md section 5).

`decide` is pure and total: the same request, policy and facts give the same decision, and it never raises. In this
order: built-in denials, deny rules, ask rules, allow rules, a quarantined definition, the mode. The strictest rule that
speaks wins, no rule for being more specific; a line stands as its strictest command. An ask rule, a quarantine or a
secret only ever makes a call stricter than it would be without.
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
    strictest,
)
from punie.domain.permission.grants import approval_key
from punie.domain.permission.modes import Column, Mode, Verdict, default_verdict
from punie.domain.permission.path_findings import (
    OWN_FILES_RULE,
    ROOTS_RULE,
    named_by,
    own_file,
    secret_finding,
    sensitive_change,
)
from punie.domain.permission.rules import Rule
from punie.domain.pipelines.pipeline import RUN_CODE
from punie.domain.tools.disclosure import SEARCH_TOOLS
from punie.domain.tools.metadata import Permission
from punie.domain.tools.tool import ToolDescriptor, ToolKind, ToolSource
from punie.domain.values.path_patterns import covers, may_touch_below, touches
from punie.domain.values.paths import Location

UPDATE_PLAN = "update_plan"
LOAD_SKILL = "load_skill"
ASK_USER = "ask_user"

UNASKED_BUILT_INS = frozenset(
    {
        "read_file",
        "list_files",
        "search_text",
        "get_shell_info",
        "git_status",
        "git_diff",
        "git_log",
        "get_terminal_output",
        "release_terminal",
        "wait_for_terminal_exit",
        "kill_terminal",
        SEARCH_TOOLS,
        UPDATE_PLAN,
        LOAD_SKILL,
        ASK_USER,
        RUN_CODE,
    }
)
"""Built-in tools that run without a question: they read inside the roots, act on the session's own terminals, or only
tell or ask the person something, or make calls that are decided one by one."""

COMMAND_TOOL = "run_command"
QUARANTINE_RULE = "built-in:quarantine"
EDITING_TOOLS = frozenset({"write_file", "edit_file"})
EDIT_ARGUMENTS = frozenset({"path", "content", "old_text", "new_text", "replace_all"})
"""What our own editing tools take: of a stranger's tool by their name no other word is known to name no other file."""

PLAN_TOOL = "switch_mode"
"""Punie's own way out of read-only: a person says yes to it or nobody does, in every mode."""

DEEP_READERS = frozenset({"search_text", "git_diff"})
"""Tools that show what lies below the path they are given, or below the session's directory."""

HARMLESS_KINDS = frozenset({ToolKind.READ, ToolKind.SEARCH, ToolKind.THINK})

_EFFECTS = {ToolKind.EDIT: "changes a file", ToolKind.EXECUTE: "runs a program or writes to the repository"}
_CHANGING_KINDS = frozenset({ToolKind.EDIT, ToolKind.DELETE, ToolKind.MOVE})
_ANSWERABLE = frozenset({ToolSource.IDE, ToolSource.PLUG_IN})
"""Strangers whose word is taken for what only reads: the user's own IDE, and packages the user installed."""


def decide(request: PermissionRequest, policy: Policy, facts: Facts) -> Decision:
    """The decision on one call."""
    rules = tuple(rule for rule in policy.rules if rule.concerns(request.tool, policy.mode))
    call = _Call(request.tool, policy, rules, facts, frozenset(request.arguments), _asked_for(request, facts))
    is_command = facts.command is not None or request.tool.name == COMMAND_TOOL
    line = LinePolicy(policy, rules, facts)
    parts = line.decide(facts.command) if is_command else ()
    found = call.denied() or (call.of_line(line, parts) if is_command else call.of_tool())
    key = approval_key(request.tool, request.arguments, facts.cwd) if found.verdict is Verdict.ASK else None
    return Decision(found.verdict, found.rule, found.reason, parts, key)


def _asked_for(request: PermissionRequest, facts: Facts) -> tuple[str, ...]:
    path = request.arguments.get("path")
    if not isinstance(path, str) or not path:
        return ()
    bases = (facts.cwd,) if facts.cwd else facts.bases
    return tuple(posixpath.normpath(posixpath.join(base, path)) for base in bases)


@frozen
class _Call:
    """One call with the rules that speak of its tool; lives as long as the decision."""

    tool: ToolDescriptor
    policy: Policy
    rules: tuple[Rule, ...]
    facts: Facts
    given: frozenset[str]
    """The names of its arguments."""
    asked: tuple[str, ...] = ()
    """The path as it was named, before links were followed: a rule that tightens may speak of that."""

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
        """What the commands of a line come to together."""
        found = [Finding(part.verdict, part.rule, part.reason) for part in parts]
        secrets = [] if line.allows_all else [secret_finding(where.path) for where in self._secrets()]
        return strictest(*self._cautions(), *found, *secrets)

    def of_tool(self) -> Finding:
        """What any other tool's call comes to."""
        deny = next((rule for rule in self.rules if rule.decision is Verdict.DENY and self._speaks(rule)), None)
        if deny is not None:
            return said(deny)
        return strictest(*self._cautions(), *self._asked(), *self._touchy(), self._allowed() or self._by_mode())

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
        """Secrets, and files that others run: asked about unless an allow rule names them."""
        for where in self._secrets():
            if not self._named(where):
                yield secret_finding(where.path)
        if self._changes_files():
            for where in self.facts.locations:
                found = sensitive_change(where.path)
                if found is not None and not self._named(where):
                    yield found

    def _allowed(self) -> Finding | None:
        rule = next((rule for rule in self.rules if rule.allows and self._covers(rule)), None)
        return None if rule is None else said(rule)

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
        if rule.command is not None or rule.path is None or self.tool.name not in DEEP_READERS:
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
        """The paths that the call is about; a tool that goes through a folder takes the session's by itself."""
        located = tuple(where.path for where in self.facts.locations)
        return located or (self.facts.bases if self.tool.name in DEEP_READERS else ())

    def _places_known(self) -> bool:
        """Whether the call can be about no path but those that were located."""
        if self.tool.source is ToolSource.BUILT_IN or self.tool.name not in EDITING_TOOLS:
            return True
        return bool(self.facts.locations) and self.given <= EDIT_ARGUMENTS

    def _changes_files(self) -> bool:
        return self.tool.name in EDITING_TOOLS or self.tool.kind in _CHANGING_KINDS


def _column(tool: ToolDescriptor) -> Column:
    if tool.source is ToolSource.PIPELINE:
        return Column.READ  # it does nothing but make calls, which are decided one by one
    built_in = tool.source is ToolSource.BUILT_IN
    if tool.name in EDITING_TOOLS and (built_in or (tool.source in _ANSWERABLE and tool.kind is ToolKind.EDIT)):
        return Column.EDIT
    if tool.requires_permission:
        return Column.OTHER_TOOL
    if built_in:
        looks = tool.name in UNASKED_BUILT_INS or _switches_mode(tool)
        return Column.READ if looks else Column.OTHER_COMMAND
    return Column.READ if tool.source in _ANSWERABLE and _harmless(tool) else Column.OTHER_TOOL


def _switches_mode(tool: ToolDescriptor) -> bool:
    return tool.source is ToolSource.BUILT_IN and tool.name == PLAN_TOOL


def _harmless(tool: ToolDescriptor) -> bool:
    """Whether a stranger's tool only looks, as far as everything it says of itself goes (S2-43)."""
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
