"""Tools and their inputs under the names that authors of hooks know, worked out from the roles of the parameters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from punie.application.tools.session_tool import CallContext
from punie.domain.tools.roles import Role
from punie.domain.tools.tool import ToolDescriptor, ToolKind, ToolResult, ToolSource
from punie.domain.values.json_value import JsonObject, thaw, thaw_object

TEXT_CHARS = 100_000
"""Characters of a result that a hook is told."""

_KEYS = {
    Role.CONTENT: "content", Role.OLD_TEXT: "old_string", Role.NEW_TEXT: "new_string", Role.QUERY: "pattern",
    Role.URL: "url",
}  # fmt: skip


def names_of(tool: ToolDescriptor) -> tuple[str, ...]:
    """The names that a matcher may mean, the usual one first; the last is Punie's own."""
    server, name = tool.metadata.get("server"), tool.metadata.get("name")
    served = (f"mcp__{server}__{name}",) if tool.source is ToolSource.MCP and server and name else ()
    purpose = _purpose(tool)
    return (*served, *((purpose,) if purpose else ()), tool.name)


def _purpose(tool: ToolDescriptor) -> str:
    roles = tool.roles
    if Role.COMMAND in roles:
        return "Bash"
    if Role.OLD_TEXT in roles or Role.PATCH in roles:
        return "Edit"
    if Role.CONTENT in roles and roles.changes_files:
        return "Write"
    if Role.URL in roles and tool.kind is ToolKind.FETCH:
        return "WebFetch"
    if Role.QUERY in roles and tool.kind is ToolKind.SEARCH:
        return "Grep"
    if Role.PATH_READ in roles and tool.kind is ToolKind.READ:
        return "Read"
    return "Glob" if Role.PATH_LOOK in roles else ""


def inputs_of(tool: ToolDescriptor, arguments: JsonObject, context: CallContext) -> tuple[dict[str, object], ...]:
    """The call's arguments with the keys of that form beside Punie's; one for each file that the call changes.

    So a hook that looks at one path sees all of them.
    """
    told = thaw_object(arguments)
    for name, role in tool.roles.by_name.items():
        if role in _KEYS and name in told:
            told.setdefault(_KEYS[role], told[name])
    if isinstance(edits := told.get("edits"), list):
        told["edits"] = [_edit(one) for one in cast("list[object]", edits)]
    if context.command is not None:
        told["command"] = context.command.line
        return (told,)
    paths = [where.path for where in context.locations]
    if not paths:
        return (told,)
    return tuple({**told, "file_path": path} for path in (paths if tool.roles.changes_files else paths[:1]))


def _edit(one: object) -> object:
    if not isinstance(one, dict):
        return one
    edit = cast("dict[str, object]", one)
    return {**edit, "old_string": edit.get("old_text"), "new_string": edit.get("new_text")}


def response_of(result: ToolResult, told: Mapping[str, object]) -> dict[str, object]:
    """The result of a call for a hook."""
    answer: dict[str, object] = {"success": result.succeeded, "text": result.text[:TEXT_CHARS]}
    if "file_path" in told:
        answer["filePath"] = told["file_path"]
    structured = result.structured
    if isinstance(structured, Mapping) and "command" in told:
        answer |= {"stdout": thaw(structured.get("output")), "stderr": "", "exitCode": structured.get("exitCode")}
    return answer
