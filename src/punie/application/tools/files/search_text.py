"""The tool `search_text`: lines of files on this machine's disk, since ACP has no method that searches files."""

from __future__ import annotations

from attrs import frozen

from punie.application.tools.built_in import BOOLEAN, STRING, BuiltInTool, details, optional, schema
from punie.application.tools.files.file_memory import folder_of, relative
from punie.application.tools.session_tool import CallContext, PreparedCall
from punie.domain.errors import ToolFailedError
from punie.domain.tools.catalog import Serving
from punie.domain.tools.metadata import Capability, Permission
from punie.domain.tools.roles import Column, Role
from punie.domain.tools.schema import flag_argument, text_argument
from punie.domain.tools.tool import ToolDescriptor, ToolKind, ToolResult
from punie.domain.values.json_value import JsonObject
from punie.ports.tools import CallProgress
from punie.ports.workspace import FileTree

FIND_LIMIT = 200
LINE_LIMIT_CHARS = 400


@frozen
class SearchText(BuiltInTool):
    """Finds the lines that contain a text."""

    tree: FileTree
    SERVING = Serving.BESIDE_CLIENT | Serving.BY_MACHINE
    NEEDS = (FileTree,)
    TITLE = "Searching for {query!r}"
    DESCRIPTOR = ToolDescriptor(
        "search_text",
        ToolKind.SEARCH,
        "Find the lines that contain a literal text in the project's files.",
        schema(
            {"text": STRING},
            {"path": optional("string"), "glob": optional("string", "such as *.py"), "ignore_case": BOOLEAN},
        ),
        categories=("search",),
        roles={"text": Role.QUERY, "path": Role.PATH_BELOW, "glob": Role.PLAIN, "ignore_case": Role.PLAIN},
        column=Column.READ,
        details=details(
            Capability.READ_FILES,
            Permission.READ,
            ({"text": "def total", "glob": "*.py"}, "a text in the Python files"),
        ),
    )

    async def prepare(self, arguments: JsonObject, context: CallContext) -> PreparedCall:
        path, text = folder_of(context), text_argument(arguments, "text")
        if not text or "\n" in text:
            raise ToolFailedError("text must be one line that is not empty; a match is a line that contains it.")

        async def effect(_progress: CallProgress) -> ToolResult:
            found = await self.tree.search_text(
                path,
                text,
                case_sensitive=not flag_argument(arguments, "ignore_case"),
                glob=text_argument(arguments, "glob") or None,
                limit=FIND_LIMIT,
            )
            matches = [
                {"path": relative(hit.path, context.cwd), "line": hit.line_1based, "text": hit.text[:LINE_LIMIT_CHARS]}
                for hit in found.lines
            ]
            shown = "\n".join(f"{hit['path']}:{hit['line']}: {hit['text']}" for hit in matches)
            note = "" if found.complete else f"\n[only the first {len(matches)}; narrow the search with path or glob]"
            nothing = f"No line contains {text!r} ({found.files_read} files read)."
            return ToolResult.success(
                (shown or nothing) + note, structured={"matches": matches, "complete": found.complete}
            )

        return PreparedCall(effect)
