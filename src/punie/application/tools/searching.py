"""list_files and search_text: ACP has no method for them, so they look at this machine's disk (R-01, R-03)."""

from __future__ import annotations

from attrs import frozen

from punie.application.tools.built_in import BOOLEAN, STRING, BuiltInTool, optional, schema
from punie.application.tools.session_tool import CallContext, PreparedCall, flag_argument, text_argument
from punie.domain.errors import ToolFailedError
from punie.domain.tools.tool import ToolDescriptor, ToolKind, ToolResult
from punie.domain.values.json_value import JsonObject
from punie.domain.values.paths import shown_path
from punie.ports.tools import CallProgress
from punie.ports.workspace import FileTree

LIST_LIMIT = 1000
FIND_LIMIT = 200
LINE_LIMIT_CHARS = 400


@frozen
class ListFiles(BuiltInTool):
    """Lists a folder, or the tree below it."""

    tree: FileTree
    DESCRIPTOR = ToolDescriptor(
        "list_files",
        ToolKind.READ,
        "List the files of a folder (default: the project's), what git ignores left out.",
        schema({}, {"path": optional("string"), "recursive": BOOLEAN}),
        categories=("file",),
    )

    async def prepare(self, arguments: JsonObject, context: CallContext) -> PreparedCall:
        path = _folder(context)

        async def effect(_progress: CallProgress) -> ToolResult:
            listing = await self.tree.list_files(
                path, recursive=flag_argument(arguments, "recursive"), limit=LIST_LIMIT
            )
            names = [_relative(entry, context.cwd) for entry in listing.paths]
            note = "" if listing.complete else f"\n[only the first {len(names)}; list a folder below instead]"
            text = "\n".join(names) or f"{path} is empty, or git ignores all of it."
            return ToolResult.success(text + note, structured={"files": names, "complete": listing.complete})

        return PreparedCall(effect)


@frozen
class SearchText(BuiltInTool):
    """Finds the lines that contain a text."""

    tree: FileTree
    DESCRIPTOR = ToolDescriptor(
        "search_text",
        ToolKind.SEARCH,
        "Find the lines that contain a literal text in the project's files.",
        schema(
            {"text": STRING},
            {"path": optional("string"), "glob": optional("string", "such as *.py"), "ignore_case": BOOLEAN},
        ),
        categories=("search",),
    )

    async def prepare(self, arguments: JsonObject, context: CallContext) -> PreparedCall:
        path, text = _folder(context), text_argument(arguments, "text")
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
                {"path": _relative(hit.path, context.cwd), "line": hit.line_1based, "text": hit.text[:LINE_LIMIT_CHARS]}
                for hit in found.lines
            ]
            shown = "\n".join(f"{hit['path']}:{hit['line']}: {hit['text']}" for hit in matches)
            note = "" if found.complete else f"\n[only the first {len(matches)}; narrow the search with path or glob]"
            nothing = f"No line contains {text!r} ({found.files_read} files read)."
            return ToolResult.success(
                (shown or nothing) + note, structured={"matches": matches, "complete": found.complete}
            )

        return PreparedCall(effect)


def _folder(context: CallContext) -> str:
    return context.locations[0].path if context.locations else context.cwd


def _relative(path: str, cwd: str) -> str:
    shown = shown_path(path.rstrip("/") or path, cwd)
    return f"{shown}/" if path.endswith("/") and shown != "/" else shown
