"""Asking leave: the options offered, what an answer means, and what a grant covers (rulings R-02, R-16).

The flow is a small state machine over values: a decision opens it (`open_flow`), an answer settles it
(`Asking.settle`). Whatever an answer looks like, it allows only if it picked an allowing option that was offered.
"""

from __future__ import annotations

import hashlib
import json
from enum import StrEnum
from typing import TypeAlias

from attrs import frozen

from punie.domain.content import Diff
from punie.domain.json_value import JsonObject, thaw
from punie.domain.policy import Decision, Facts, Verdict
from punie.domain.tool import ToolDescriptor, ToolKind, ToolSource


class OptionKind(StrEnum):
    """ACP's four kinds of permission option (A-04)."""

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
REJECT = PermissionOption("reject", "Reject", OptionKind.REJECT_ONCE)


@frozen
class Selected:
    """The person picked the option of that id."""

    option_id: str


@frozen
class Dismissed:
    """The question was closed without an answer: cancelled, nobody there, connection gone."""

    reason: str = "the question was dismissed"


@frozen
class Unusable:
    """The answer was none that we understand."""

    reason: str


PermissionOutcome: TypeAlias = Selected | Dismissed | Unusable


@frozen
class PermissionQuestion:
    """Everything a person needs in order to say yes or no; some clients show nothing else."""

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


@frozen
class GrantScope:
    """What "for this session" would cover; equal scopes are covered by one grant."""

    tool: str
    key: str


@frozen
class Allowed:
    """The call may run; `grant` is to be remembered for the session where set."""

    grant: GrantScope | None = None


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
        """What the answer means: anything but an allowing option that was offered here is a denial (R-02)."""
        if not isinstance(outcome, Selected):
            return Denied(outcome.reason)
        option = next((option for option in self.options if option.id == outcome.option_id), None)
        if option is None:
            return Denied("the answer named an option that was not offered")
        if not option.kind.allows:
            return Denied("the user rejected it")
        return Allowed(self.scope if option.kind is OptionKind.ALLOW_ALWAYS else None)


Flow: TypeAlias = Allowed | Denied | Asking


def open_flow(decision: Decision, scope: GrantScope | None, granted: frozenset[GrantScope]) -> Flow:
    """The first state: a denial stands, a grant spares the question, else the question with its options."""
    if decision.verdict is Verdict.DENY:
        return Denied(decision.reason)
    if decision.verdict is Verdict.ALLOW or (scope is not None and scope in granted):
        return Allowed()
    options = (ALLOW_ONCE, ALLOW_SESSION, REJECT) if scope is not None else (ALLOW_ONCE, REJECT)
    return Asking(options, scope, decision.reason)


def grant_scope(tool: ToolDescriptor, arguments: JsonObject, facts: Facts, cwd: str) -> GrantScope | None:
    """What a session grant for this call would cover (R-02); None where no scope can be named.

    A secret is asked for each time (R-16), whoever serves the tool; so is one that wants each call confirmed (S2-48).
    """
    if tool.details.requires_confirmation or any(where.secret for where in facts.locations):
        return None
    if tool.source is not ToolSource.BUILT_IN:
        return GrantScope(tool.name, definition_hash(tool))
    if tool.name in {"write_file", "edit_file"}:
        return GrantScope(tool.name, "any path inside the session's directories")
    if tool.name == "run_command":
        directory = facts.locations[0].path if facts.locations else cwd
        return GrantScope(tool.name, _digest([thaw(arguments.get("command")), thaw(arguments.get("args")), directory]))
    return None


def definition_hash(tool: ToolDescriptor) -> str:
    """A digest of everything a tool says of itself: a changed definition is another tool to the grants."""
    said = [
        tool.name, tool.kind.value, tool.title, tool.description, thaw(tool.parameters), tool.requires_permission,
        thaw(tool.annotations), None if tool.output_schema is None else thaw(tool.output_schema),
        list(tool.categories), list(tool.tags), thaw(tool.metadata), repr(tool.details),
    ]  # fmt: skip
    return _digest(said)


def _digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode("utf-8", "surrogatepass")).hexdigest()
