"""Grants: the calls that an approval covers beyond the one it was given for, and for how long.

A grant is found by its key: a digest of the tool, its definition and everything else that the scope binds. Two scopes
are equal exactly where tool and key are; their words are for people. A safe pattern makes a stored grant wider than one
command word by word: the command may then name any files below its directory, to one known effect.
"""

from __future__ import annotations

import hashlib
import json
import posixpath
import re
from collections.abc import Sequence
from typing import Self

from attrs import field, frozen

from punie.domain.tools.arguments import declares
from punie.domain.tools.tool import ToolDescriptor, ToolSource
from punie.domain.values.json_value import JsonObject, thaw
from punie.domain.values.paths import is_inside
from shellsight.report import CommandPart
from shellsight.secret_names import is_secret

_PLAIN = re.compile(r"[A-Za-z0-9_./][A-Za-z0-9_./+-]*")
"""Words that mean nothing special to a shell, and neither an option nor a list of arguments to a program."""


@frozen
class SafePattern:
    """A command of `prefix`, then only `flags` and files; `effect` says all that it may do with those."""

    prefix: tuple[str, ...]
    flags: frozenset[str]
    effect: str

    @property
    def words(self) -> str:
        """The pattern in words for a person."""
        return f"{' '.join(self.prefix)} for anything below it, which it may {self.effect}"

    def covers(self, part: CommandPart, directory: str, roots: tuple[str, ...]) -> bool:
        """Whether the pattern covers that command, its paths located, run in that directory."""
        if part.argv[: len(self.prefix)] != self.prefix:
            return False
        words = part.argv[len(self.prefix) :]
        files = [word for word in words if not word.startswith("-")]
        known = {use.path for use in part.paths if use.where is not None and use.where.inside}
        flags_known = self.flags.issuperset(word for word in words if word.startswith("-"))
        return flags_known and all(_plain_file(word, directory, roots, known) for word in files)


_RUFF = frozenset({"-q", "--quiet", "-v", "--verbose", "--no-cache", "--isolated", "--diff"})

SAFE_PATTERNS: tuple[SafePattern, ...] = (
    SafePattern(("ruff", "check"), _RUFF | {"--fix", "--no-fix", "--statistics", "--exit-zero"}, "fix"),
    SafePattern(("ruff", "format"), _RUFF | {"--check"}, "format"),
    SafePattern(("mkdir",), frozenset({"-p", "-v"}), "make"),
)


def safe_pattern(part: CommandPart, directory: str, roots: Sequence[str]) -> SafePattern | None:
    """The pattern that covers the command, run in that directory; None where only the exact command may be granted."""
    return next((pattern for pattern in SAFE_PATTERNS if pattern.covers(part, directory, tuple(roots))), None)


def _plain_file(word: str, directory: str, roots: tuple[str, ...], known: set[str]) -> bool:
    """Whether the word names a path below the directory and the roots, by its letters and once links were followed."""
    if _PLAIN.fullmatch(word) is None:
        return False
    path = posixpath.normpath(posixpath.join(directory, word))
    return path in known and is_inside(path, (directory,)) and is_inside(path, roots) and not is_secret(path)


GRANT_DAYS = 90
"""The time that a stored grant lasts unless it is given again."""

DAY_S = 86_400.0
ID_CHARS = 12


@frozen
class GrantScope:
    """The scope of "for this session"; `stored` is the scope of "always", None where that is not offered.

    `words` describe the scope, whole and as it is stored; `directory` is the one in which it holds; `runs` says that
    the tool runs commands.
    """

    tool: str
    key: str
    words: str = field(default="", eq=False)
    directory: str = field(default="", eq=False)
    stored: GrantScope | None = field(default=None, eq=False)
    runs: bool = field(default=False, eq=False)


@frozen
class StoredGrant:
    """A grant that outlives its session. Times are seconds since the epoch; from `expires_at` on it covers nothing.

    The id follows from the scope: the same grant given again has the same id and lasts longer.
    """

    id: str
    tool: str
    scope: str
    key: str
    directory: str
    created_at: float
    expires_at: float

    @classmethod
    def of(cls, scope: GrantScope, now: float, days: float = GRANT_DAYS) -> Self:
        """The grant of a stored scope, given now."""
        name = digest([scope.tool, scope.key])[:ID_CHARS]
        return cls(name, scope.tool, scope.words, scope.key, scope.directory, now, now + days * DAY_S)

    @property
    def covers(self) -> GrantScope:
        """The scope that the grant answers for."""
        return GrantScope(self.tool, self.key, self.scope, self.directory)


@frozen
class ToolPin:
    """The definition of a server's or client's tool that a person approved last, in that directory.

    `source` is a `ToolSource`'s value, `server` the MCP server's or the client's name, `definition` a digest.
    """

    source: str
    server: str
    directory: str
    tool: str
    definition: str
    pinned_at: float


def takes_command(tool: ToolDescriptor) -> bool:
    """Whether a server's tool takes a command: an approval of one command does not cover another."""
    return tool.source is ToolSource.MCP and declares(tool.parameters, "command")


def definition_hash(tool: ToolDescriptor) -> str:
    """A digest of a tool's own definition: one that changed is another tool to the grants.

    The facts that Punie adds, its roles and its column, are no part of the digest.
    """
    said = [
        tool.name, tool.kind.value, tool.title, tool.description, thaw(tool.parameters), tool.requires_permission,
        thaw(tool.annotations), None if tool.output_schema is None else thaw(tool.output_schema),
        list(tool.categories), list(tool.tags), thaw(tool.metadata), repr(tool.details),
    ]  # fmt: skip
    return digest(said)


def arguments_digest(arguments: JsonObject) -> str:
    """A digest of a call's arguments: equal arguments, however they were ordered, have equal digests."""
    return digest(thaw(arguments))


def approval_key(tool: ToolDescriptor, arguments: JsonObject, directory: str) -> str:
    """The key of one approval: this tool as it is defined now, these arguments, this directory."""
    return digest([tool.source.value, definition_hash(tool), arguments_digest(arguments), directory])


def digest(value: object) -> str:
    """A digest of a plain JSON tree, the same for the same tree whatever the order of its keys."""
    return text_digest(json.dumps(value, sort_keys=True))


def text_digest(text: str) -> str:
    """A digest of a text."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
