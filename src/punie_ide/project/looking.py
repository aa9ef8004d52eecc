"""open_file and search_project: what a person does with the editor and with "find in files"."""

from __future__ import annotations

from typing import Any

from punie.api import ToldToModel
from punie_ide.project.arguments import argument, required, workspace_of
from punie_ide.project.files import absolute, files_below, shown
from punie_ide.tools import IdeTool, ToolAnswer, ToolContext

AROUND_LINES = 8
HIT_LIMIT = 100
TEXT_SUFFIXES = (
    ".py", ".pyi", ".md", ".rst", ".txt", ".toml", ".cfg", ".ini", ".json", ".yaml", ".yml", ".html", ".css", ".js",
    ".ts", ".tsx", ".java", ".kt", ".go", ".rs", ".c", ".h", ".cpp", ".sh", ".sql", ".xml",
)  # fmt: skip


async def _open_file(arguments: dict[str, Any], context: ToolContext) -> ToolAnswer:
    path, line = required(arguments, "path"), argument(arguments, "line", 1)
    around = argument(arguments, "around", AROUND_LINES)
    text = await workspace_of(context).read_text(absolute(context.cwd, path))
    lines = text.splitlines()
    first = max(1, min(line, len(lines)) - around)
    shown_lines = lines[first - 1 : line + around]
    numbered = "\n".join(f"{number:5} {content}" for number, content in enumerate(shown_lines, first))
    structured = {"path": path, "first_line": first, "line": line, "lines": shown_lines, "total_lines": len(lines)}
    return ToolAnswer(numbered or f"{path} is empty.", structured)


async def _search_project(arguments: dict[str, Any], context: ToolContext) -> ToolAnswer:
    text, path = required(arguments, "text"), argument(arguments, "path", ".")
    files = await files_below(context.cwd, path, TEXT_SUFFIXES)
    hits: list[dict[str, Any]] = []
    for file in files.paths:
        hits.extend(await _hits(file, text, context))
        if len(hits) > HIT_LIMIT:
            break
    kept = hits[:HIT_LIMIT]
    lines = [f"{hit['path']}:{hit['line']}: {hit['text']}" for hit in kept] or [f"{text!r} occurs nowhere in {path}."]
    complete = files.complete and len(hits) <= HIT_LIMIT
    if not complete:
        lines.append("... there may be more; narrow it down with path")
    return ToolAnswer("\n".join(lines), {"count": len(kept), "complete": complete, "hits": kept})


async def _hits(file: str, text: str, context: ToolContext) -> list[dict[str, Any]]:
    try:
        content = await workspace_of(context).read_text(file)
    except ToldToModel:
        return []  # not text, or gone since it was listed
    where = shown(context.cwd, file)
    return [
        {"path": where, "line": number, "text": line.strip()[:200]}
        for number, line in enumerate(content.splitlines(), 1)
        if text in line
    ]


OPEN_FILE = IdeTool(
    "open_file",
    _open_file,
    "The lines of a file around one line, numbered, unsaved edits included.",
    "read",
    "Open file",
    {
        "type": "object",
        "properties": {
            "path": {"type": "string", "description": "file, relative to the project"},
            "line": {"type": "integer", "minimum": 1, "default": 1},
            "around": {"type": "integer", "minimum": 0, "maximum": 500, "default": AROUND_LINES},
        },
        "required": ["path"],
        "additionalProperties": False,
    },
    categories=("navigation",),
    annotations={"readOnlyHint": True},
)

SEARCH_PROJECT = IdeTool(
    "search_project",
    _search_project,
    "Lines of the project's text files that contain a text, literally and with its case.",
    "search",
    "Search the project",
    {
        "type": "object",
        "properties": {
            "text": {"type": "string", "minLength": 1},
            "path": {"type": "string", "description": "file or folder to stay in", "default": "."},
        },
        "required": ["text"],
        "additionalProperties": False,
    },
    categories=("navigation",),
    annotations={"readOnlyHint": True},
)
