"""The tool `git_diff`, through a library that runs nothing of the repository."""

from __future__ import annotations

from attrs import frozen

from punie.application.tools.built_in import BOOLEAN, PlainTool, details, optional, schema
from punie.application.tools.session_tool import CallContext
from punie.domain.tools.catalog import Serving
from punie.domain.tools.metadata import Capability, Permission
from punie.domain.tools.roles import Column, Role
from punie.domain.tools.schema import flag_argument
from punie.domain.tools.tool import ToolDescriptor, ToolKind, ToolResult
from punie.domain.values.json_value import JsonObject
from punie.ports.repository import Repository


@frozen
class GitDiff(PlainTool):
    """Changes as a unified diff."""

    repository: Repository
    SERVING = Serving.BY_MACHINE
    TITLE = "Looking at the git diff"
    DESCRIPTOR = ToolDescriptor(
        "git_diff",
        ToolKind.READ,
        "Show uncommitted changes as a unified diff.",
        schema({}, {"path": optional("string"), "staged": BOOLEAN}),
        categories=("git",),
        roles={"path": Role.PATH_BELOW, "staged": Role.PLAIN},
        column=Column.READ,
        details=details(Capability.GIT, Permission.READ, ({"path": "src"}, "what changed below a folder")),
    )

    async def run(self, arguments: JsonObject, context: CallContext) -> ToolResult:
        path = context.locations[0].path if context.locations else None
        text = await self.repository.diff(path, staged=flag_argument(arguments, "staged"))
        return ToolResult.success(text or "There are no such changes.", structured={"diff": text})
