"""read_file and write_file, over whichever workspace the plan names (S1, R-01)."""

from __future__ import annotations

from attrs import field, frozen

from punie.application.tools.built_in import STRING, BuiltInTool, optional, schema
from punie.application.tools.file_memory import FileMemory, require_unchanged
from punie.application.tools.session_tool import CallContext, KnowsFiles, PreparedCall, text_argument, whole_argument
from punie.domain.errors import ToldToModel, ToolFailedError
from punie.domain.tools.tool import ToolDescriptor, ToolKind, ToolResult
from punie.domain.values.content import Diff
from punie.domain.values.file_kind import HEAD_BYTES, kind_of, looks_binary
from punie.domain.values.json_value import JsonObject, utf8_size
from punie.ports.tools import CallProgress
from punie.ports.workspace import Workspace


@frozen
class ReadFile(BuiltInTool, KnowsFiles):
    """Reads a text file, whole or a range of lines, as it is: no line numbers, nothing left out."""

    workspace: Workspace
    memory: FileMemory = field(factory=FileMemory)
    DESCRIPTOR = ToolDescriptor(
        "read_file",
        ToolKind.READ,
        "Read a text file.",
        schema(
            {"path": STRING},
            {"line": optional("integer", "first line, from 1", minimum=1), "limit": optional("integer", minimum=1)},
        ),
        categories=("file",),
    )

    def file_bytes(self, arguments: JsonObject, context: CallContext) -> int | None:
        if "line" in arguments or "limit" in arguments or not context.locations:
            return None
        return self.memory.size_bytes(path_of(context))

    async def prepare(self, arguments: JsonObject, context: CallContext) -> PreparedCall:
        path = path_of(context)
        line, limit = whole_argument(arguments, "line"), whole_argument(arguments, "limit")

        async def effect(_progress: CallProgress) -> ToolResult:
            text = await self.workspace.read_text(path, line_1based=line, limit_lines=limit)
            if looks_binary(text):
                return _not_text(path, text)
            if line is None and limit is None:
                self.memory.remember(path, text)
            else:
                self.memory.remember_part(path, text, line, limit)
            return ToolResult.success(text)

        return PreparedCall(effect)


@frozen
class WriteFile(BuiltInTool, KnowsFiles):
    """Makes a file hold exactly the given content. `before` reads what it held, for the diff; None: not to be had.

    A file that changed since this session last saw it is not written, nor one that changed while the question was
    open. That takes a reader that sees what the writer writes; beside a client that only writes there is none.
    """

    workspace: Workspace
    before: Workspace | None
    memory: FileMemory = field(factory=FileMemory)
    DESCRIPTOR = ToolDescriptor(
        "write_file",
        ToolKind.EDIT,
        "Create a file or replace all of its content.",
        schema({"path": STRING, "content": STRING}),
        categories=("file",),
    )

    def file_bytes(self, arguments: JsonObject, context: CallContext) -> int | None:
        content = arguments.get("content")
        return utf8_size(content) if isinstance(content, str) else None

    async def prepare(self, arguments: JsonObject, context: CallContext) -> PreparedCall:
        path, content = path_of(context), text_argument(arguments, "content")
        old = None if self.before is None else await text_or_none(self.before, path)
        sees_writes = self.before is self.workspace
        if sees_writes:
            self.memory.check(path, old)
        diff = Diff(path, old, content)

        async def effect(_progress: CallProgress) -> ToolResult:
            async with self.memory.alone(path):
                if sees_writes:
                    require_unchanged(path, old, await text_or_none(self.workspace, path))
                await self.workspace.write_text(path, content)
                self.memory.remember(path, content)
            return ToolResult.success(
                f"Successfully wrote to {text_argument(arguments, 'path')}", content=(diff,), structured={"path": path}
            )

        return PreparedCall(effect, (diff,))


def path_of(context: CallContext) -> str:
    """Where the call's path leads. Raises `ToolFailedError` where it named none."""
    if not context.locations:
        raise ToolFailedError("path is empty. Give the path of a file.")
    return context.locations[0].path


async def text_or_none(workspace: Workspace, path: str) -> str | None:
    """The whole text; None where there is no such file, or one that is no text."""
    try:
        return await workspace.read_text(path)
    except ToldToModel:
        return None


def _not_text(path: str, text: str) -> ToolResult:
    """What is said of a file whose bytes somebody decoded who should not have."""
    kind = kind_of(text[:HEAD_BYTES].encode("utf-8", "replace"))
    return ToolResult.failure(
        f"{path} is not text: it looks like {kind}, {len(text)} characters once decoded. "
        "Use run_command with a program that knows its format.",
        code="not_text",
        structured={"path": path, "kind": kind, "characters": len(text)},
    )
