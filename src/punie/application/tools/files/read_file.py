"""The tool `read_file`: a text file or some of its lines, from the client or from this machine."""

from __future__ import annotations

from attrs import frozen

from punie.application.tools.built_in import STRING, BuiltInTool, details, optional, schema
from punie.application.tools.files.file_memory import ServedFiles, path_of
from punie.application.tools.session_tool import CallContext, PreparedCall
from punie.domain.tools.catalog import Serving
from punie.domain.tools.metadata import Capability, Permission
from punie.domain.tools.roles import Column, Role
from punie.domain.tools.schema import whole_argument
from punie.domain.tools.tool import ToolDescriptor, ToolKind, ToolResult
from punie.domain.values.file_kind import HEAD_BYTES, kind_of, looks_binary
from punie.domain.values.json_value import JsonObject
from punie.ports.tools import CallProgress


@frozen
class ReadFile(BuiltInTool):
    """Reads a text file, whole or a range of lines, as it is: no line numbers, nothing left out.

    Results that were too long for the model are read as well; they are outside the project, on this machine's disk.
    """

    files: ServedFiles
    SERVING = Serving.BY_CLIENT
    NEEDS = (ServedFiles,)
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

    def file_bytes(self, arguments: JsonObject, context: CallContext) -> int | None:
        if "line" in arguments or "limit" in arguments or not context.locations:
            return None
        return self.files.memory.size_bytes(path_of(context))

    async def prepare(self, arguments: JsonObject, context: CallContext) -> PreparedCall:
        path, memory = path_of(context), self.files.memory
        workspace = self.files.reader_of(path)
        line, limit = whole_argument(arguments, "line"), whole_argument(arguments, "limit")

        async def effect(_progress: CallProgress) -> ToolResult:
            text = await workspace.read_text(path, line_1based=line, limit_lines=limit)
            if looks_binary(text):
                return _not_text(path, text)
            if line is None and limit is None:
                memory.remember(path, text)
            else:
                memory.remember_part(path, text, line, limit)
            return ToolResult.success(text)

        return PreparedCall(effect)


def _not_text(path: str, text: str) -> ToolResult:
    """The result for a file that is no text, although it was read as one."""
    kind = kind_of(text[:HEAD_BYTES].encode("utf-8", "replace"))
    return ToolResult.failure(
        f"{path} is not text: it looks like {kind}, {len(text)} characters once decoded. "
        "Use run_command with a program that knows its format.",
        code="not_text",
        structured={"path": path, "kind": kind, "characters": len(text)},
    )
