"""The values that go into a decision, the table of modes, and the decision itself, which `policy.decide` makes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from attrs import field, frozen

from punie.domain.permission.modes import Mode, Verdict
from punie.domain.permission.rules import Rule
from punie.domain.tools.roles import Column
from punie.domain.tools.tool import ToolDescriptor
from punie.domain.values.json_value import EMPTY_OBJECT, JsonObject, freeze_object
from punie.domain.values.paths import Location
from shellsight.report import CommandReport


def _in_order(rules: Iterable[Rule]) -> tuple[Rule, ...]:
    return tuple(sorted(rules, key=lambda rule: rule.place))


@frozen
class Policy:
    """What a session allows: its mode, and the rules of all sources; their order does not matter, and is not kept.

    `protected` are absolute paths of Punie's own settings and state, which no tool writes; a project's own are known
    by name and need not be listed.
    """

    mode: Mode = Mode.ASK
    rules: tuple[Rule, ...] = field(default=(), converter=_in_order)
    protected: tuple[str, ...] = ()


@frozen
class PermissionRequest:
    """One call as far as its words go."""

    tool: ToolDescriptor
    arguments: JsonObject = field(default=EMPTY_OBJECT, converter=freeze_object)


@frozen
class Facts:
    """What is known of a call beyond its words: where its paths lie once links were followed, what it would run.

    `command` is what a command line would do, its paths located; None where no line was read. `cwd` and `roots` are
    the session's, absolute. `quarantined`: the tool's definition changed since it was approved.
    """

    locations: tuple[Location, ...] = ()
    command: CommandReport | None = None
    cwd: str = ""
    roots: tuple[str, ...] = ()
    quarantined: bool = False

    @property
    def bases(self) -> tuple[str, ...]:
        """The directories that relative patterns are taken from."""
        return self.roots or ((self.cwd,) if self.cwd else ())


@frozen
class PartDecision:
    """What was decided of one command of a line, by which rule, and why."""

    argv: tuple[str, ...]
    verdict: Verdict
    rule: str
    reason: str


@frozen
class Decision:
    """A verdict with the rule that gave it and the reason in words.

    `parts` has a row for each command of a line. `key` names what was decided on, tool, arguments and directory: an
    approval holds for this key alone.
    """

    verdict: Verdict
    rule: str
    reason: str
    parts: tuple[PartDecision, ...] = ()
    key: str | None = None


@frozen
class Finding:
    """One voice on the way to a decision."""

    verdict: Verdict
    rule: str
    reason: str


def strictest(first: Finding, *more: Finding) -> Finding:
    """The strictest finding; of equally strict ones the first."""
    return max((first, *more), key=lambda finding: finding.verdict.strictness)


_TABLE: Mapping[Mode, Mapping[Column, Verdict]] = {
    Mode.READ_ONLY: {Column.READ: Verdict.ALLOW, Column.SAFE_COMMAND: Verdict.ALLOW},
    Mode.ASK: {
        Column.READ: Verdict.ALLOW,
        Column.EDIT: Verdict.ASK,
        Column.SAFE_COMMAND: Verdict.ALLOW,
        Column.OTHER_COMMAND: Verdict.ASK,
        Column.DOUBTFUL_COMMAND: Verdict.ASK,
        Column.OTHER_TOOL: Verdict.ASK,
    },
    Mode.ACCEPT_EDITS: {
        Column.READ: Verdict.ALLOW,
        Column.EDIT: Verdict.ALLOW,
        Column.SAFE_COMMAND: Verdict.ALLOW,
        Column.OTHER_COMMAND: Verdict.ASK,
        Column.DOUBTFUL_COMMAND: Verdict.ASK,
        Column.OTHER_TOOL: Verdict.ASK,
    },
    Mode.AUTO: {
        Column.READ: Verdict.ALLOW,
        Column.EDIT: Verdict.ALLOW,
        Column.SAFE_COMMAND: Verdict.ALLOW,
        Column.OTHER_COMMAND: Verdict.ALLOW,
        Column.DOUBTFUL_COMMAND: Verdict.ASK,
        Column.OTHER_TOOL: Verdict.ALLOW,
    },
}


def default_verdict(mode: Mode, column: Column) -> Verdict:
    """What the mode says where no rule speaks; whatever its row leaves out is denied."""
    return _TABLE[mode].get(column, Verdict.DENY)
