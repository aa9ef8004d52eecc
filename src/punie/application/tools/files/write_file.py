"""write_file: all of a file's content, over whichever workspace the plan names."""

from __future__ import annotations

from attrs import field, frozen

from punie.application.tools.built_in import STRING, BuiltInTool, details, schema
from punie.application.tools.files.file_memory import FileMemory, ServedFiles, path_of, require_unchanged, text_or_none
from punie.application.tools.session_tool import CallContext, KnowsFiles, PreparedCall, Services, SessionTool
from punie.domain.tools.arguments import text_argument
from punie.domain.tools.discovery import Serving
from punie.domain.tools.metadata import Capability, Permission
from punie.domain.tools.roles import Column, Role
from punie.domain.tools.tool import ToolDescriptor, ToolKind, ToolResult
from punie.domain.values.content import Diff
from punie.domain.values.json_value import JsonObject, utf8_size
from punie.ports.tools import CallProgress
from punie.ports.workspace import Workspace


@frozen
class WriteFile(BuiltInTool, KnowsFiles):
    """Makes a file hold exactly the given content. `before` reads what it held, for the diff; None: not to be had.

    A file that changed since this session last saw it is not written, nor one that changed while the question was
    open. That takes a reader that sees what the writer writes; beside a client that only writes there is none.
    """

    workspace: Workspace
    before: Workspace | None
    memory: FileMemory = field(factory=FileMemory)
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

    @classmethod
    def from_services(cls, services: Services) -> SessionTool:
        served = services.get(ServedFiles)
        return cls(served.workspace, served.before, served.memory)

    def file_bytes(self, arguments: JsonObject, context: CallContext) -> int | None:
        content = self.DESCRIPTOR.roles.change(arguments).content
        return None if content is None else utf8_size(content)

    async def prepare(self, arguments: JsonObject, context: CallContext) -> PreparedCall:
        path, content = path_of(context), self.DESCRIPTOR.roles.change(arguments).content or ""
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
