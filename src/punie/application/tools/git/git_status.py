"""The tool `git_status`, through a library that runs no program."""

from __future__ import annotations

from attrs import asdict, frozen

from punie.application.tools.built_in import PlainTool, details, schema
from punie.application.tools.session_tool import CallContext
from punie.domain.tools.catalog import Serving
from punie.domain.tools.metadata import Capability, Permission
from punie.domain.tools.roles import Column
from punie.domain.tools.tool import ToolDescriptor, ToolKind, ToolResult
from punie.domain.values.json_value import JsonObject
from punie.ports.repository import Repository


@frozen
class GitStatus(PlainTool):
    """Branch and changed files."""

    repository: Repository
    SERVING = Serving.BY_MACHINE
    TITLE = "Looking at the git status"
    DESCRIPTOR = ToolDescriptor(
        "git_status",
        ToolKind.READ,
        "Show the git branch and the changed files.",
        schema({}),
        categories=("git",),
        column=Column.READ,
        details=details(Capability.GIT, Permission.READ, ({}, "branch and changed files")),
    )

    async def run(self, arguments: JsonObject, context: CallContext) -> ToolResult:
        status = await self.repository.status()
        lines = [f"branch: {status.branch or '(none)'}"]
        for label in ("staged", "changed", "untracked"):
            lines += [f"{label}: {path}" for path in getattr(status, label)]
        text = "\n".join(lines if len(lines) > 1 else [*lines, "nothing changed"])
        return ToolResult.success(text, structured=asdict(status))
