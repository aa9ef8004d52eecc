"""The roles of a tool's parameters, which a descriptor names, and the columns of the table of modes."""

from __future__ import annotations

from enum import Enum

from shellsight.arguments.roles import Change, Role, Roles

__all__ = ["Change", "Column", "Role", "Roles"]


class Column(Enum):
    """The kinds of calls that a mode distinguishes: the columns of the table of modes."""

    READ = "read in roots"
    EDIT = "edit in roots"
    SAFE_COMMAND = "command on the safe list"
    OTHER_COMMAND = "other command"
    DOUBTFUL_COMMAND = "dangerous command, or one that is not understood"
    OTHER_TOOL = "other tool"
