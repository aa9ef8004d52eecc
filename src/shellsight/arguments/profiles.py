"""Profiles: the roles of well-known tools' parameters, by server, tool and parameter."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from types import MappingProxyType

from attrs import field, frozen

from shellsight.arguments.roles import Role

NO_ROLES: Mapping[str, Role] = MappingProxyType({})


@frozen
class Profile:
    """The roles of the tools of one well-known server; immutable.

    `servers` are globs over names of servers in lower case. `shared` are roles of parameters that each of these tools
    may have.
    """

    servers: tuple[str, ...] = field(converter=tuple[str, ...])
    tools: Mapping[str, Mapping[str, Role]]
    shared: Mapping[str, Role]

    @classmethod
    def of(cls, servers: Iterable[str], tools: Mapping[str, Mapping[str, str]], shared: Mapping[str, str]) -> Profile:
        """A profile as a file has it. Raises `ValueError` for a word that is no role."""
        named = {tool: {name: Role(word) for name, word in roles.items()} for tool, roles in tools.items()}
        return cls(servers, named, {name: Role(word) for name, word in shared.items()})

    def roles(self, tool: str, servers: Iterable[str]) -> Mapping[str, Role]:
        """The roles for that tool of a server with any of these names; empty where the profile is not about it."""
        if tool not in self.tools or not any(fnmatchcase(name, glob) for name in servers for glob in self.servers):
            return NO_ROLES
        return {**self.shared, **self.tools[tool]}
