"""The tool `outline`: the definitions of a source file, or of the source files of a folder, on this machine's disk."""

from __future__ import annotations

from attrs import frozen

from punie.application.tools.built_in import STRING, PlainTool, details, schema
from punie.application.tools.files.file_memory import folder_of, relative
from punie.application.tools.session_tool import CallContext
from punie.domain.tools.catalog import Serving
from punie.domain.tools.metadata import Capability, Permission
from punie.domain.tools.roles import Column, Role
from punie.domain.tools.tool import ToolDescriptor, ToolKind, ToolResult
from punie.domain.values.json_value import JsonObject
from punie.ports.workspace import FileTree

OUTLINE_LIMIT = 500


@frozen
class Outline(PlainTool):
    """Tells the classes, functions and other definitions of a file, or the outermost ones of a folder's files."""

    tree: FileTree
    SERVING = Serving.BESIDE_CLIENT | Serving.BY_MACHINE
    TITLE = "Outlining {path}"
    DESCRIPTOR = ToolDescriptor(
        "outline",
        ToolKind.READ,
        "List the definitions of a source file with their lines; of a folder's files, the outermost.",
        schema({"path": STRING}),
        categories=("search",),
        roles={"path": Role.PATH_BELOW},
        column=Column.READ,
        details=details(Capability.READ_FILES, Permission.READ, ({"path": "src/app.py"}, "what a file defines")),
    )

    async def run(self, arguments: JsonObject, context: CallContext) -> ToolResult:
        found = await self.tree.outline(folder_of(context), limit=OUTLINE_LIMIT)
        files = [(relative(path, context.cwd), definitions) for path, definitions in found.files]
        lines: list[str] = []
        for path, definitions in files:
            lines += [path] if definitions else []
            lines += [
                f"{'  ' * each.depth}  {each.line_1based}-{each.end_line_1based} {each.text}" for each in definitions
            ]
        note = "" if found.complete else "\n[not all; outline a folder or file below instead]"
        structured = {
            "files": [
                {
                    "path": path,
                    "definitions": [
                        {"name": each.name, "kind": each.kind, "line": each.line_1based,
                         "end_line": each.end_line_1based, "depth": each.depth}
                        for each in definitions
                    ],
                }
                for path, definitions in files
            ],
            "complete": found.complete,
        }  # fmt: skip
        text = "\n".join(lines) or "No definitions. Python, JavaScript, TypeScript, Go, Rust, Java and C are looked at."
        return ToolResult.success(text + note, structured=structured)
