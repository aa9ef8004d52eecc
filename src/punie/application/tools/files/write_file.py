"""The tool `write_file`: replaces all of a file's content, through the client or on this machine."""

from __future__ import annotations

from attrs import frozen

from punie.application.tools.built_in import STRING, BuiltInTool, details, schema
from punie.application.tools.files.changing import FileChange, carry_out
from punie.application.tools.files.file_memory import ServedFiles, path_of, text_or_none
from punie.application.tools.session_tool import CallContext, PreparedCall
from punie.domain.tools.catalog import Serving
from punie.domain.tools.metadata import Capability, Permission
from punie.domain.tools.roles import Column, Role
from punie.domain.tools.schema import text_argument
from punie.domain.tools.tool import ToolDescriptor, ToolKind, ToolResult
from punie.domain.values.content import Diff
from punie.domain.values.json_value import JsonObject, utf8_size
from punie.ports.tools import CallProgress


@frozen
class WriteFile(BuiltInTool):
    """Makes a file hold exactly the given content.

    A file that changed since this session last saw it, or while the question was open, is not written. Such a change is
    seen only where the same side reads and writes; beside a client that only writes it is not.
    """

    files: ServedFiles
    SERVING = Serving.BY_CLIENT
    TITLE = "Writing {path}"
    DENIAL = "write {path}"
    DESCRIPTOR = ToolDescriptor(
        "write_file",
        ToolKind.EDIT,
        "Create a file or replace all of its content.",
        schema({"path": STRING, "content": STRING}),
        categories=("file",),
        roles={"path": Role.PATH_WRITE, "content": Role.CONTENT},
        column=Column.EDIT,
        details=details(
            Capability.WRITE_FILES, Permission.WRITE, ({"path": "notes.txt", "content": "Hello.\n"}, "a new file")
        ),
    )

    def file_bytes(self, arguments: JsonObject, context: CallContext) -> int | None:
        content = self.DESCRIPTOR.roles.change(arguments).content
        return None if content is None else utf8_size(content)

    async def prepare(self, arguments: JsonObject, context: CallContext) -> PreparedCall:
        path, content = path_of(context), self.DESCRIPTOR.roles.change(arguments).content or ""
        files = self.files.seen_by(context)
        workspace, before, memory = files.workspace, files.before, files.memory
        old = None if before is None else await text_or_none(before, path)
        sees_writes = before is workspace
        if sees_writes:
            memory.check(path, old)
        diff = Diff(path, old, content)

        async def effect(_progress: CallProgress) -> ToolResult:
            async with memory.alone(path):
                if sees_writes:
                    await carry_out(files, [FileChange(path, old, content, "written")])
                else:
                    await workspace.write_text(path, content)
                    memory.wrote(path, old, content)
            said = f"Successfully wrote to {text_argument(arguments, 'path')}"
            return ToolResult.success(said, content=(diff,), structured={"path": path})

        return PreparedCall(effect, (diff,))
