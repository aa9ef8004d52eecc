"""The tool `list_files`: names of files on this machine's disk, since ACP has no method that lists files."""

from __future__ import annotations

from attrs import frozen

from punie.application.tools.built_in import BOOLEAN, PlainTool, details, optional, schema
from punie.application.tools.files.file_memory import folder_of, relative
from punie.application.tools.session_tool import CallContext
from punie.domain.tools.catalog import Serving
from punie.domain.tools.metadata import Capability, Permission
from punie.domain.tools.roles import Column, Role
from punie.domain.tools.schema import flag_argument
from punie.domain.tools.tool import ToolDescriptor, ToolKind, ToolResult
from punie.domain.values.json_value import JsonObject
from punie.ports.workspace import FileTree

LIST_LIMIT = 1000


@frozen
class ListFiles(PlainTool):
    """Lists a folder, or the tree below it."""

    tree: FileTree
    SERVING = Serving.BESIDE_CLIENT | Serving.BY_MACHINE
    TITLE = "Listing {path}"
    DESCRIPTOR = ToolDescriptor(
        "list_files",
        ToolKind.READ,
        "List the files of a folder (default: the project's), what git ignores left out.",
        schema({}, {"path": optional("string"), "recursive": BOOLEAN}),
        categories=("file",),
        roles={"path": Role.PATH_LOOK, "recursive": Role.PLAIN},
        column=Column.READ,
        details=details(
            Capability.READ_FILES,
            Permission.READ,
            ({"path": "src", "recursive": True}, "the whole tree below a folder"),
        ),
    )

    async def run(self, arguments: JsonObject, context: CallContext) -> ToolResult:
        path, recursive = folder_of(context), flag_argument(arguments, "recursive")
        listing = await self.tree.list_files(path, recursive=recursive, limit=LIST_LIMIT)
        names = [relative(entry, context.cwd) for entry in listing.paths]
        note = "" if listing.complete else f"\n[only the first {len(names)}; list a folder below instead]"
        text = "\n".join(names) or f"{path} is empty, or git ignores all of it."
        return ToolResult.success(text + note, structured={"files": names, "complete": listing.complete})
