"""Asking for permission: the options of a question, the meaning of an answer, and the scope of a grant.

The flow is a small state machine over values: a decision opens it (`open_flow`), an answer settles it
(`Asking.settle`). An answer allows a call only where it picks an allowing option that was offered.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TypeAlias

from attrs import evolve, frozen

from punie.domain.permission.decisions import Decision, Facts
from punie.domain.permission.grants import (
    GRANT_DAYS,
    GrantScope,
    arguments_digest,
    definition_hash,
    digest,
    safe_pattern,
    takes_command,
)
from punie.domain.permission.modes import Verdict
from punie.domain.permission.policy import QUARANTINE_RULE
from punie.domain.tools.roles import Column, Role
from punie.domain.tools.tool import ToolDescriptor, ToolKind, ToolSource
from punie.domain.values.content import Diff
from punie.domain.values.json_value import JsonObject, json_text, thaw
from shellsight.report import CommandPart, CommandReport, Effect, Standing

WORDS_LIMIT = 240
"""A grant with longer words is not offered for storing: a person has to see everything that is stored."""

_RULES = "rule:"
_BUILT_IN = "built-in:"
"""The beginnings of the rules of a decision: a person's own rules, and cautions that no mode and no grant overrides."""

_NEVER_STORED = frozenset({Effect.SECRETS, Effect.PRIVILEGE, Effect.RUNS_CODE})


class OptionKind(StrEnum):
    """ACP's four kinds of permission option."""

    ALLOW_ONCE = "allow_once"
    ALLOW_ALWAYS = "allow_always"
    REJECT_ONCE = "reject_once"
    REJECT_ALWAYS = "reject_always"

    @property
    def allows(self) -> bool:
        """Whether picking an option of this kind lets the call run."""
        return self in {OptionKind.ALLOW_ONCE, OptionKind.ALLOW_ALWAYS}


@frozen
class PermissionOption:
    """One button of the question."""

    id: str
    name: str
    kind: OptionKind


ALLOW_ONCE = PermissionOption("allow_once", "Allow once", OptionKind.ALLOW_ONCE)
ALLOW_SESSION = PermissionOption("allow_session", "Allow for this session", OptionKind.ALLOW_ALWAYS)
ALLOW_STORED_ID = "allow_stored"
REJECT = PermissionOption("reject", "Reject", OptionKind.REJECT_ONCE)


@frozen
class Selected:
    """The person picked the option of that id."""

    option_id: str


@frozen
class Dismissed:
    """The question was closed without an answer: cancelled, no person present, connection lost."""

    reason: str = "the question was dismissed"


@frozen
class Unusable:
    """The answer has no form that Punie understands."""

    reason: str


PermissionOutcome: TypeAlias = Selected | Dismissed | Unusable


@frozen
class PermissionQuestion:
    """Everything that a person needs to decide; some clients show nothing else.

    `would_store` describes the grant that the option to always allow would store, empty where there is none. `rule` is
    the decision's rule, `about` a text about the call beyond its arguments, such as a plan, and `directory` the one in
    which a program would run.
    """

    session_id: str
    call_id: str
    tool: str
    title: str
    kind: ToolKind
    reason: str
    options: tuple[PermissionOption, ...]
    locations: tuple[str, ...] = ()
    diffs: tuple[Diff, ...] = ()
    raw_input: JsonObject | None = None
    would_store: str = ""
    rule: str = ""
    about: str = ""
    directory: str = ""


@frozen
class Allowed:
    """The call may run; `grant`, if any, is remembered for the session, and stored for longer where `lasting`."""

    grant: GrantScope | None = None
    lasting: bool = False


@frozen
class Denied:
    """The call must not run."""

    reason: str


@frozen
class Asking:
    """A person has to be asked."""

    options: tuple[PermissionOption, ...]
    scope: GrantScope | None
    reason: str

    def settle(self, outcome: PermissionOutcome) -> Allowed | Denied:
        """The next state: anything but an allowing option that was offered here is a denial."""
        if not isinstance(outcome, Selected):
            return Denied(outcome.reason)
        option = next((option for option in self.options if option.id == outcome.option_id), None)
        if option is None:
            return Denied("the answer named an option that was not offered")
        if not option.kind.allows:
            return Denied("the user rejected it")
        if option.kind is not OptionKind.ALLOW_ALWAYS:
            return Allowed()
        if option.id == ALLOW_STORED_ID and self.scope is not None and self.scope.stored is not None:
            return Allowed(self.scope.stored, lasting=True)
        return Allowed(self.scope)


Flow: TypeAlias = Allowed | Denied | Asking


def open_flow(decision: Decision, scope: GrantScope | None, granted: frozenset[GrantScope]) -> Flow:
    """The first state: a denial, permission by a grant, or else a question with its options.

    `granted` are the grants of the session and the stored ones. A grant answers where the mode asks. No grant answers a
    rule that asks, nor a built-in caution unless it was given for exactly this command; a definition that changed has
    to be granted again.
    """
    if decision.verdict is Verdict.DENY:
        return Denied(decision.reason)
    if decision.verdict is Verdict.ALLOW:
        return Allowed()
    voices = {decision.rule, *(part.rule for part in decision.parts if part.verdict is Verdict.ASK)}
    scope = _narrowed(scope, voices)
    if scope is not None and QUARANTINE_RULE not in voices and not granted.isdisjoint({scope, scope.stored}):
        return Allowed()
    return Asking(_options(scope), scope, decision.reason)


def _narrowed(scope: GrantScope | None, voices: set[str]) -> GrantScope | None:
    """The part of the scope that may be granted at all where these rules ask."""
    if scope is None or any(voice.startswith(_RULES) for voice in voices):
        return None
    if any(voice.startswith(_BUILT_IN) for voice in voices - {QUARANTINE_RULE}):
        return evolve(scope, stored=None) if scope.runs else None
    return scope


def _options(scope: GrantScope | None) -> tuple[PermissionOption, ...]:
    if scope is None:
        return ALLOW_ONCE, REJECT
    if scope.stored is None:
        return ALLOW_ONCE, ALLOW_SESSION, REJECT
    always = PermissionOption(ALLOW_STORED_ID, f"Always allow: {scope.stored.words}", OptionKind.ALLOW_ALWAYS)
    return ALLOW_ONCE, ALLOW_SESSION, always, REJECT


def would_store(scope: GrantScope | None) -> str:
    """The question's words on the option to always allow; empty where there is none."""
    if scope is None or scope.stored is None:
        return ""
    return f"Always allow stores, for {GRANT_DAYS} days or until revoked: {scope.stored.words}"


def grant_scope(tool: ToolDescriptor, arguments: JsonObject, facts: Facts, cwd: str) -> GrantScope | None:
    """The scope of a grant for this call; None where no scope can be named.

    A call that touches a secret is asked about each time, and so is a tool that requires each call to be confirmed.
    """
    if tool.details.requires_confirmation or _touches_secrets(facts):
        return None
    about = [tool.source.value, tool.name, definition_hash(tool)]
    roots = facts.roots or (cwd,)
    if takes_command(tool):
        exactly = f"exactly with {json_text(arguments)}"
        words = f"in {cwd}: {tool.name} of the {tool.source.value}, as it is defined now, {exactly}"
        return _scope(tool, about, [cwd, arguments_digest(arguments)], words, cwd)
    if tool.source is not ToolSource.BUILT_IN:
        words = f"in {cwd}: {tool.name} of the {tool.source.value}, as it is defined now, with any arguments"
        return _scope(tool, about, [cwd], words, cwd)
    if tool.column is Column.EDIT:
        words = f"in {' and '.join(roots)}: {tool.name} on any path"
        return _scope(tool, about, sorted(roots), words, cwd)
    if Role.COMMAND in tool.roles:
        return _command_scope(tool, about, arguments, facts, cwd)
    return None


def _scope(tool: ToolDescriptor, about: list[str], where: list[str], words: str, directory: str) -> GrantScope:
    """A scope of the tool in which `where` is bound and nothing else."""
    runs = Role.COMMAND in tool.roles
    session = GrantScope(tool.name, digest(["session", about, where]), words, directory, runs=runs)
    return _with_stored(session, digest(["always", about, where]), words)


def _command_scope(tool: ToolDescriptor, about: list[str], arguments: JsonObject, facts: Facts, cwd: str) -> GrantScope:
    """For the session exactly this command; stored only where it was understood and has no effect outside the roots."""
    directory = facts.locations[0].path if facts.locations else cwd
    command = [thaw(arguments.get("command")), thaw(arguments.get("args")), directory]
    line = "" if facts.command is None else facts.command.line
    words = f"in {directory}, exactly: {line}"
    session = GrantScope(tool.name, digest(["session", about, command]), words, directory, runs=True)
    part = _storable(facts.command)
    if part is None:
        return session
    roots = facts.roots or (cwd,)
    plain = " ".join(part.argv) == line  # no quotes, no redirection, no wrapper: nothing but these words
    pattern = safe_pattern(part, directory, roots) if plain else None
    if pattern is None:
        return _with_stored(session, digest(["always", about, command]), session.words)
    key = digest(["always", about, list(pattern.prefix), directory, sorted(roots)])
    return _with_stored(session, key, f"in {directory}: {pattern.words}")


def _with_stored(session: GrantScope, key: str, words: str) -> GrantScope:
    """The scope with one to store beside it, if the words of that can be shown whole and unchanged."""
    if len(words) > WORDS_LIMIT or not words.isprintable():
        return session
    return evolve(session, stored=GrantScope(session.tool, key, words, session.directory))


def _storable(report: CommandReport | None) -> CommandPart | None:
    """The single command of a line that may be stored as a grant; None where the line is anything more."""
    if report is None or len(report.parts) != 1:
        return None
    part = report.parts[0]
    certain = part.literal and not part.inline_code and part.standing <= Standing.ORDINARY
    inside = all(use.where is not None and use.where.inside for use in part.paths)
    return part if certain and inside and not part.effects & _NEVER_STORED else None


def _touches_secrets(facts: Facts) -> bool:
    if any(where.secret for where in facts.locations):
        return True
    if facts.command is None:
        return False
    shown = any(Effect.SECRETS in part.effects for part in facts.command.parts)
    return shown or any(use.where is not None and use.where.secret for use in facts.command.paths)
