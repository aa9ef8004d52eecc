"""The roles of other parties' tools: those that the schema says, those that a profile names, and guesses.

A guess only makes decisions stricter, and a schema that is not trusted cannot make them looser than a guess would.
"""

from __future__ import annotations

from collections.abc import Mapping

from attrs import evolve

from punie.domain.tools.tool import ToolDescriptor, ToolSource
from punie.domain.values.json_value import EMPTY_OBJECT
from shellsight.arguments.guesses import roles_of
from shellsight.arguments.roles import Role


def with_roles(tool: ToolDescriptor, known: Mapping[str, Role], *, trusted: bool) -> ToolDescriptor:
    """The tool with the roles of its parameters; `known` are those that do not have to be guessed.

    Roles that the descriptor has already stay as they are. The schema of an MCP server is never `trusted`.
    """
    if tool.roles.by_name or tool.roles.open:  # `open`: they were worked out already, and there are none
        return tool
    name, _, along = as_served(tool)
    trusted = trusted and tool.source is not ToolSource.MCP
    return evolve(tool, roles=roles_of(tool.parameters, known, name, tool.kind.value, more=along, trusted=trusted))


def as_served(tool: ToolDescriptor) -> tuple[str, str, Mapping[str, object]]:
    """The tool's name on its server, the server's name, and the arguments that its calls are sent along."""
    if tool.source is not ToolSource.MCP:
        return tool.name, tool.source.value, EMPTY_OBJECT
    name, server, along = (tool.metadata.get(key) for key in ("name", "server", "sentAlong"))
    return str(name or tool.name), str(server), along if isinstance(along, Mapping) else EMPTY_OBJECT


def at_home(path: str, home: str) -> str:
    """The path with a leading `~` as the home directory, which another party may take it for; our own tools do not."""
    return home + path[1:] if path.startswith("~") else path
