"""The tool `git_log`, through a library that runs no program."""

from __future__ import annotations

from attrs import asdict, frozen

from punie.application.tools.built_in import PlainTool, details, optional, schema
from punie.application.tools.session_tool import CallContext
from punie.domain.tools.catalog import Serving
from punie.domain.tools.metadata import Capability, Permission
from punie.domain.tools.roles import Column, Role
from punie.domain.tools.schema import whole_argument
from punie.domain.tools.tool import ToolDescriptor, ToolKind, ToolResult
from punie.domain.values.json_value import JsonObject
from punie.ports.repository import Commit, Repository

LOG_DEFAULT = 10
LOG_LIMIT = 200


@frozen
class GitLog(PlainTool):
    """The newest commits."""

    repository: Repository
    SERVING = Serving.BY_MACHINE
    TITLE = "Looking at the git log"
    DESCRIPTOR = ToolDescriptor(
        "git_log",
        ToolKind.READ,
        "Show the newest commits.",
        schema({}, {"limit": optional("integer", minimum=1, maximum=LOG_LIMIT)}),
        categories=("git",),
        roles={"limit": Role.PLAIN},
        column=Column.READ,
        details=details(Capability.GIT, Permission.READ, ({"limit": 5}, "the last five commits")),
    )

    async def run(self, arguments: JsonObject, context: CallContext) -> ToolResult:
        commits = await self.repository.log(min(whole_argument(arguments, "limit") or LOG_DEFAULT, LOG_LIMIT))
        text = "\n".join(commit_line(commit) for commit in commits) or "There are no commits yet."
        return ToolResult.success(text, structured={"commits": [asdict(commit) for commit in commits]})


def commit_line(commit: Commit) -> str:
    """A commit as the model reads it, on one line."""
    subject = commit.message.strip().partition("\n")[0]
    return f"{commit.id[:10]} {commit.time} {commit.author}: {subject}"
