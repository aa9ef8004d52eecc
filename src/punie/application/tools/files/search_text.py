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
from punie.domain.tools.schema import flag_argument, text_argument, whole_argument
from punie.domain.tools.tool import ToolDescriptor, ToolKind, ToolResult
from punie.domain.values.json_value import JsonObject
from punie.ports.tools import CallProgress
from punie.ports.workspace import FileTree, Findings, Sought

FIND_LIMIT = 200
LINE_LIMIT_CHARS = 400
CONTEXT_LIMIT = 20


@frozen
class SearchText(BuiltInTool):
    """Finds the lines that contain a text, or match an expression."""

    tree: FileTree
    SERVING = Serving.BESIDE_CLIENT | Serving.BY_MACHINE
    TITLE = "Searching for {query!r}"
    DESCRIPTOR = ToolDescriptor(
        "search_text",
        ToolKind.SEARCH,
        "Find lines in the project's files by text or regex; without what git ignores.",
        schema(
            {"text": STRING},
            {
                "path": optional("string"),
                "glob": optional("string", "such as *.py"),
                "ignore_case": BOOLEAN,
                "regex": {**BOOLEAN, "description": "Rust's dialect: no look-around, no backreferences"},
                "whole_word": BOOLEAN,
                "context": optional("integer", "lines around", minimum=0, maximum=CONTEXT_LIMIT),
                "files_only": BOOLEAN,
            },
        ),
        categories=("search",),
        roles={
            "text": Role.QUERY,
            "path": Role.PATH_BELOW,
            **dict.fromkeys(("regex", "glob", "ignore_case", "whole_word", "context", "files_only"), Role.PLAIN),
        },
        column=Column.READ,
        details=details(
            Capability.READ_FILES,
            Permission.READ,
            ({"text": "def total", "glob": "*.py"}, "a text in the Python files"),
            ({"text": r"class \w+Error\b", "regex": True, "context": 2}, "an expression, with the lines around"),
        ),
    )

    async def prepare(self, arguments: JsonObject, context: CallContext) -> PreparedCall:
        path, text = folder_of(context), text_argument(arguments, "text")
        if not text or "\n" in text:
            raise ToolFailedError("text must be one line that is not empty; a match is a line that contains it.")

        sought = Sought(
            text,
            case_sensitive=not flag_argument(arguments, "ignore_case"),
            regex=flag_argument(arguments, "regex"),
            whole_word=flag_argument(arguments, "whole_word"),
            glob=text_argument(arguments, "glob") or None,
            context=whole_argument(arguments, "context") or 0,
            files_only=flag_argument(arguments, "files_only"),
        )

        async def effect(_progress: CallProgress) -> ToolResult:
            found = await self.tree.search_text(path, sought, limit=FIND_LIMIT)
            files = list(dict.fromkeys(relative(hit.path, context.cwd) for hit in found.lines))
            matches = [
                {"path": relative(hit.path, context.cwd), "line": hit.line_1based, "text": hit.text[:LINE_LIMIT_CHARS]}
                for hit in found.lines
            ]
            shown = "\n".join(files if sought.files_only else _blocks(found, context.cwd))
            count = len(found.lines)
            note = "" if found.complete else f"\n[only the first {count}; narrow the search with path or glob]"
            nothing = f"No line {'matches' if sought.regex else 'contains'} {text!r}."
            told = {"files": files} if sought.files_only else {"matches": matches}
            return ToolResult.success((shown or nothing) + note, structured={**told, "complete": found.complete})

        return PreparedCall(effect)


def _blocks(found: Findings, cwd: str) -> list[str]:
    """The lines found as `path:12: text`, lines around them as `path-11- text`, with `--` where lines are left out."""
    shown: list[str] = []
    rows: dict[str, dict[int, tuple[str, str]]] = {}
    for hit in found.lines:
        of_file = rows.setdefault(relative(hit.path, cwd), {})
        around = enumerate((*hit.before, None, *hit.after), hit.line_1based - len(hit.before))
        for number, text in around:
            if text is None:
                of_file[number] = (":", hit.text)
            else:
                of_file.setdefault(number, ("-", text))
    with_gaps = any(hit.before or hit.after for hit in found.lines)
    for path, of_file in rows.items():
        last = None
        for number, (mark, text) in sorted(of_file.items()):
            if with_gaps and shown and number - 1 != last:
                shown.append("--")
            shown.append(f"{path}{mark}{number}{mark} {text[:LINE_LIMIT_CHARS]}")
            last = number
    return shown
