"""git_status, git_diff, git_log and git_add_commit, through a library that runs nothing (S0-10, R-01)."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import cast

from attrs import asdict, frozen

from punie.application.tools.built_in import BOOLEAN, STRING, BuiltInTool, optional, schema
from punie.application.tools.session_tool import (
    CallContext,
    PreparedCall,
    flag_argument,
    text_argument,
    whole_argument,
    words_argument,
)
from punie.domain.errors import ToolFailedError
from punie.domain.tools.tool import ToolDescriptor, ToolKind, ToolResult
from punie.domain.values.json_value import JsonObject
from punie.domain.values.paths import Location
from punie.ports.tools import CallProgress
from punie.ports.workspace import Commit, Repository

LOG_DEFAULT = 10
LOG_LIMIT = 200


@frozen
class _GitTool(BuiltInTool):
    repository: Repository


class GitStatus(_GitTool):
    """Branch and changed files."""

    DESCRIPTOR = ToolDescriptor(
        "git_status", ToolKind.READ, "Show the git branch and the changed files.", schema({}), categories=("git",)
    )

    async def prepare(self, arguments: JsonObject, context: CallContext) -> PreparedCall:
        async def effect(_progress: CallProgress) -> ToolResult:
            status = await self.repository.status()
            lines = [f"branch: {status.branch or '(none)'}"]
            for label in ("staged", "changed", "untracked"):
                lines += [f"{label}: {path}" for path in getattr(status, label)]
            text = "\n".join(lines if len(lines) > 1 else [*lines, "nothing changed"])
            return ToolResult.success(text, structured=asdict(status, value_serializer=_as_list))

        return PreparedCall(effect)


class GitDiff(_GitTool):
    """Changes as a unified diff."""

    DESCRIPTOR = ToolDescriptor(
        "git_diff",
        ToolKind.READ,
        "Show uncommitted changes as a unified diff.",
        schema({}, {"path": optional("string"), "staged": BOOLEAN}),
        categories=("git",),
    )

    async def prepare(self, arguments: JsonObject, context: CallContext) -> PreparedCall:
        path = context.locations[0].path if context.locations else None

        async def effect(_progress: CallProgress) -> ToolResult:
            text = await self.repository.diff(path, staged=flag_argument(arguments, "staged"))
            return ToolResult.success(text or "There are no such changes.", structured={"diff": text})

        return PreparedCall(effect)


class GitLog(_GitTool):
    """The newest commits."""

    DESCRIPTOR = ToolDescriptor(
        "git_log",
        ToolKind.READ,
        "Show the newest commits.",
        schema({}, {"limit": optional("integer", minimum=1, maximum=LOG_LIMIT)}),
        categories=("git",),
    )

    async def prepare(self, arguments: JsonObject, context: CallContext) -> PreparedCall:
        limit = min(whole_argument(arguments, "limit") or LOG_DEFAULT, LOG_LIMIT)

        async def effect(_progress: CallProgress) -> ToolResult:
            commits = await self.repository.log(limit)
            text = "\n".join(_commit_line(commit) for commit in commits) or "There are no commits yet."
            return ToolResult.success(text, structured={"commits": [asdict(commit) for commit in commits]})

        return PreparedCall(effect)


class GitAddCommit(_GitTool):
    """Stages and commits, after leave was given."""

    DESCRIPTOR = ToolDescriptor(
        "git_add_commit",
        ToolKind.EXECUTE,
        "Stage files (default: every changed one) and commit them.",
        schema({"message": STRING}, {"paths": optional("array", items=STRING)}),
        categories=("git",),
    )

    async def prepare(self, arguments: JsonObject, context: CallContext) -> PreparedCall:
        message = text_argument(arguments, "message").strip()
        if not message:
            raise ToolFailedError("message is empty. Say in a sentence what the commit does.")
        named = words_argument(arguments, "paths") or ()
        paths = tuple(_as_named(path, where, context.cwd) for path, where in zip(named, context.locations, strict=True))

        async def effect(_progress: CallProgress) -> ToolResult:
            commit = await self.repository.add_and_commit(message, paths)
            return ToolResult.success(f"Committed {_commit_line(commit)}", structured=asdict(commit))

        return PreparedCall(effect)


def _as_named(path: str, where: Location, cwd: str) -> str:
    """The path to commit: a link is committed itself, not the file it leads to. The location was judged all the same.

    With `..` on the way, what stands before it may be a link, and only the location tells where that leads.
    """
    named = PurePosixPath(path)
    return where.path if ".." in named.parts else str(PurePosixPath(cwd) / named)


def _commit_line(commit: Commit) -> str:
    subject = commit.message.strip().partition("\n")[0]
    return f"{commit.id[:10]} {commit.time} {commit.author}: {subject}"


def _as_list(_owner: object, _attribute: object, value: object) -> object:
    return list(cast("tuple[object, ...]", value)) if isinstance(value, tuple) else value
