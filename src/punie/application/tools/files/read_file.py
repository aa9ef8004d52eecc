"""read_file: a text file, or some of its lines, over whichever workspace the plan names."""

from __future__ import annotations

from attrs import field, frozen

from punie.application.tools.built_in import STRING, BuiltInTool, details, optional, schema
from punie.application.tools.files.file_memory import FileMemory, ServedFiles, path_of
from punie.application.tools.session_tool import CallContext, KnowsFiles, PreparedCall, Services, SessionTool
from punie.domain.tools.arguments import whole_argument
from punie.domain.tools.discovery import Serving
from punie.domain.tools.metadata import Capability, Permission
from punie.domain.tools.roles import Column, Role
from punie.domain.tools.tool import ToolDescriptor, ToolKind, ToolResult
from punie.domain.values.file_kind import HEAD_BYTES, kind_of, looks_binary
from punie.domain.values.json_value import JsonObject
from punie.ports.tools import CallProgress
from punie.ports.workspace import OutputStore, Workspace


@frozen
class ReadFile(BuiltInTool, KnowsFiles):
    """Reads a text file, whole or a range of lines, as it is: no line numbers, nothing left out."""

    workspace: Workspace
    memory: FileMemory = field(factory=FileMemory)
    SERVING = Serving.BY_CLIENT
    TITLE = "Reading {path}"
    DENIAL = "read {path}"
    DESCRIPTOR = ToolDescriptor(
        "read_file",
        ToolKind.READ,
        "Read a text file.",
        schema(
            {"path": STRING},
            {"line": optional("integer", "first line, from 1", minimum=1), "limit": optional("integer", minimum=1)},
        ),
        categories=("file",),
        roles={"path": Role.PATH_READ, "line": Role.LINE, "limit": Role.PLAIN},
        column=Column.READ,
        details=details(
            Capability.READ_FILES,
            Permission.READ,
            ({"path": "src/app.py"}, "a whole file"),
            ({"path": "src/app.py", "line": 40, "limit": 20}, "twenty lines from the fortieth"),
        ),
    )

    @classmethod
    def from_services(cls, services: Services) -> SessionTool:
        served = services.get(ServedFiles)
        made = cls(served.workspace, served.memory)
        return made if served.kept is None else ReadFileOrOutput(made, cls(served.kept.workspace), served.kept.store)

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
class ReadFileOrOutput(SessionTool, KnowsFiles):
    """read_file of the session, which also reads what `store` holds; there `kept` reads, on this machine's disk.

    Results that were too long for the model lie outside the project, in the session's own folder.
    """

    files: ReadFile
    kept: ReadFile
    store: OutputStore

    @property
    def descriptor(self) -> ToolDescriptor:
        return self.files.descriptor

    def title(self, arguments: JsonObject) -> str:
        return self.files.title(arguments)

    def denial(self, arguments: JsonObject) -> str:
        return self.files.denial(arguments)

    def file_bytes(self, arguments: JsonObject, context: CallContext) -> int | None:
        return self._server(context).file_bytes(arguments, context)

    async def prepare(self, arguments: JsonObject, context: CallContext) -> PreparedCall:
        return await self._server(context).prepare(arguments, context)

    def _server(self, context: CallContext) -> ReadFile:
        ours = bool(context.locations) and all(self.store.holds(where.path) for where in context.locations)
        return self.kept if ours else self.files


def _not_text(path: str, text: str) -> ToolResult:
    """What is said of a file whose bytes somebody decoded who should not have."""
    kind = kind_of(text[:HEAD_BYTES].encode("utf-8", "replace"))
    return ToolResult.failure(
        f"{path} is not text: it looks like {kind}, {len(text)} characters once decoded. "
        "Use run_command with a program that knows its format.",
        code="not_text",
        structured={"path": path, "kind": kind, "characters": len(text)},
    )
