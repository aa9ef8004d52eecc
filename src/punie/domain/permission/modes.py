"""The modes of a session, the verdicts, and what a mode says where no rule speaks (INTERFACES.md section 5)."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, StrEnum


class Verdict(StrEnum):
    """What the policy says of one call, or of one part of a command."""

    ALLOW = "allow"
    ASK = "ask"
    DENY = "deny"

    @property
    def strictness(self) -> int:
        """0 for allow, 1 for ask, 2 for deny: the strictest of several wins."""
        return _STRICTNESS[self]


_STRICTNESS: Mapping[Verdict, int] = {Verdict.ALLOW: 0, Verdict.ASK: 1, Verdict.DENY: 2}


class AnsweredBy(StrEnum):
    """Who had the last word: nobody where a question went without an answer."""

    POLICY = "policy"
    GRANT = "grant"
    PERSON = "person"
    NOBODY = "nobody"


class Mode(StrEnum):
    """How much a session may do without a question; the strictest first."""

    READ_ONLY = "read-only"
    ASK = "ask"
    ACCEPT_EDITS = "accept-edits"
    AUTO = "auto"

    @property
    def looseness(self) -> int:
        """0 for the strictest."""
        return tuple(Mode).index(self)


class Column(Enum):
    """What a call comes to as far as a mode is concerned: the columns of the table, the last command one cut in two."""

    READ = "read in roots"
    EDIT = "edit in roots"
    SAFE_COMMAND = "command on the safe list"
    OTHER_COMMAND = "other command"
    DOUBTFUL_COMMAND = "dangerous command, or one that is not understood"
    OTHER_TOOL = "other tool"


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
