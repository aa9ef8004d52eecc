"""What a yes covers beyond the call it was given for, and for how long (R-02).

A grant is found again by its key: a digest of the tool, its definition and whatever else the scope binds. Two scopes
are equal exactly where tool and key are; their words are for people.
"""

from __future__ import annotations

import hashlib
import json
from typing import Self

from attrs import field, frozen

from punie.domain.tools.arguments import declares
from punie.domain.tools.tool import ToolDescriptor, ToolSource
from punie.domain.values.json_value import JsonObject, thaw

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
