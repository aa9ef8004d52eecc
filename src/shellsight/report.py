"""What a command line would do, as far as that can be told before it runs: the policy decides on this.

The order of `Standing` is the order of strictness; a line stands where its strictest part stands.
"""

from __future__ import annotations

from enum import Enum, IntEnum
from typing import Protocol

from attrs import evolve, frozen

FED = "(what xargs is fed)"
"""The operand that stands for words which arrive on standard input."""


class Standing(IntEnum):
    """How a command stands before any rule is asked."""

    SAFE = 0
    """Only looks, and every flag of it is known to only look: runs without a question in every mode."""
    ORDINARY = 1
    """Understood, with effects that a developer's day is made of: building, testing, changing files of the project."""
    UNKNOWN = 2
    """Not understood, or a program that nothing is known of: asks in every mode."""
    DANGEROUS = 3
    """Understood, and destructive, far-reaching or irreversible: asks in every mode."""
    FORBIDDEN = 4
    """Never runs, whatever anybody allowed."""


class PathEffect(Enum):
    """What is done to a path."""

    LOOK = "look"
    """Only its name, size and dates are shown."""
    READ = "read"
    WRITE = "write"
    DELETE = "delete"


class Effect(Enum):
    """What else a command does; the words are for people."""

    NETWORK = "reaches the network"
    PROCESS = "acts on other processes"
    PRIVILEGE = "changes rights or users"
    ENVIRONMENT = "changes what later commands mean"
    GIT_HISTORY = "changes git's history or repositories elsewhere"
    SECRETS = "shows or moves secrets"
    SYSTEM = "changes this machine"
    INSTALL = "installs software"
    RUNS_CODE = "runs code that is written in the line"


class Followed(Protocol):
    """Where a path leads once its links were followed: the caller's own value, for shellsight follows no links."""

    @property
    def path(self) -> str:
        """The absolute path at the end of all links."""
        ...

    @property
    def inside(self) -> bool:
        """Whether the caller counts that path among its own folders."""
        ...

    @property
    def secret(self) -> bool:
        """Whether the caller takes that path for a secret."""
        ...


@frozen
class PathUse:
    """A path that a command touches. `path` is absolute where that can be told, else as written.

    `where` is filled in by whoever can follow links; None: nobody could tell where it leads. `below` says that what
    lies beneath it is touched as well (a recursive command, a glob).
    """

    path: str
    effect: PathEffect
    below: bool = False
    where: Followed | None = None


@frozen
class CommandPart:
    """One simple command of a line, with the wrappers around it taken off.

    `argv` holds the words as far as they are certain, else as written. `literal` says that every word is certain, and
    that nothing beside them (an assignment, a wrapper's option) changes what they mean: only then may an allow rule's
    prefix cover it. `forms` are the ways a deny or ask rule may recognise it: with and without its wrappers, by path
    and by name alone. `inline_code` says that the words hold a program for an interpreter.
    """

    argv: tuple[str, ...]
    standing: Standing
    reason: str
    literal: bool = True
    forms: tuple[tuple[str, ...], ...] = ()
    paths: tuple[PathUse, ...] = ()
    effects: frozenset[Effect] = frozenset()
    inline_code: bool = False
    source: str = ""

    def raised(self, standing: Standing, reason: str) -> CommandPart:
        """This part where it stood less strictly, there instead; it never becomes looser."""
        return self if standing <= self.standing else evolve(self, standing=standing, reason=reason)


@frozen
class CommandReport:
    """Everything known of one command line; `line` as a person reads it."""

    line: str
    parts: tuple[CommandPart, ...]

    @property
    def standing(self) -> Standing:
        """That of the strictest part; a line without parts is not understood."""
        return max((part.standing for part in self.parts), default=Standing.UNKNOWN)

    @property
    def paths(self) -> tuple[PathUse, ...]:
        """The paths of all parts."""
        return tuple(use for part in self.parts for use in part.paths)
