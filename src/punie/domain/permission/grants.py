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
"""Letters that no shell reads as anything but themselves, and no program as an option or a list of arguments."""


@frozen
class SafePattern:
    """A command of `prefix`, then only `flags` and files; `effect` says all that it may do with those."""

    prefix: tuple[str, ...]
    flags: frozenset[str]
    effect: str

    @property
    def words(self) -> str:
        """How a person reads it."""
        return f"{' '.join(self.prefix)} for anything below it, which it may {self.effect}"

    def covers(self, part: CommandPart, directory: str, roots: tuple[str, ...]) -> bool:
        """Whether it covers that command, its paths located, run in that directory."""
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
    """The pattern that covers the command, run in that directory; None where it may be granted as it stands only."""
    return next((pattern for pattern in SAFE_PATTERNS if pattern.covers(part, directory, tuple(roots))), None)


def _plain_file(word: str, directory: str, roots: tuple[str, ...], known: set[str]) -> bool:
    """Whether the word names something below the directory and the roots, by its letters and where they lead."""
    if _PLAIN.fullmatch(word) is None:
        return False
    path = posixpath.normpath(posixpath.join(directory, word))
    return path in known and is_inside(path, (directory,)) and is_inside(path, roots) and not is_secret(path)


GRANT_DAYS = 90
"""How long a stored grant lasts unless it is given anew."""

DAY_S = 86_400.0
ID_CHARS = 12


@frozen
class GrantScope:
    """What "for this session" would cover; `stored` is what "always" would, None where that is not to be had.

    `words` say what is covered, whole and as it is stored; `directory` is where it holds; `runs` that the tool runs
    commands.
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

    The id follows from what is granted: the same grant given again is the same one, for longer.
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
        """The scope that it answers for."""
        return GrantScope(self.tool, self.key, self.scope, self.directory)


@frozen
class ToolPin:
    """The definition of a stranger's tool that a person approved last, in that directory.

    `source` is a `ToolSource`'s value, `server` the MCP server's or the client's name, `definition` a digest.
    """

    source: str
    server: str
    directory: str
    tool: str
    definition: str
    pinned_at: float


def takes_command(tool: ToolDescriptor) -> bool:
    """Whether a server's tool takes a command: a yes for one command is no yes for another."""
    return tool.source is ToolSource.MCP and declares(tool.parameters, "command")


def definition_hash(tool: ToolDescriptor) -> str:
    """A digest of everything a tool says of itself: a changed definition is another tool to the grants.

    What Punie knows of it besides, its roles and its column, is no part of that.
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
    """What one approval is bound to: this tool as it is defined now, these arguments, this directory."""
    return digest([tool.source.value, definition_hash(tool), arguments_digest(arguments), directory])


def digest(value: object) -> str:
    """A digest of a plain JSON tree, the same for the same tree whatever the order of its keys."""
    return text_digest(json.dumps(value, sort_keys=True))


def text_digest(text: str) -> str:
    """A digest of a text as it stands."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
