"""Tools of the reference IDE that read files, search text and list the symbols of Python files."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from attrs import frozen

from punie.api import ToldToModel
from punie_ide.project.files import absolute, argument, files_below, required, shown, workspace_of
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


SYMBOL_LIMIT = 200

_Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


@frozen
class Symbol:
    """One class, function or method: its dotted name, and the place of its definition."""

    name: str
    kind: str
    path: str
    line: int

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.kind} {self.name}"


async def _list_symbols(arguments: dict[str, Any], context: ToolContext) -> ToolAnswer:
    path, part = argument(arguments, "path", "."), argument(arguments, "name", "").lower()
    files = await files_below(context.cwd, path, (".py",))
    found: list[Symbol] = []
    unreadable: list[str] = []
    for file in files.paths:
        try:
            tree = ast.parse(await workspace_of(context).read_text(file))
        except (ToldToModel, SyntaxError, ValueError, RecursionError):
            unreadable.append(shown(context.cwd, file))
            continue
        found.extend(symbol for symbol in _symbols(tree, shown(context.cwd, file)) if part in symbol.name.lower())
        if len(found) > SYMBOL_LIMIT:
            break
    return _answer(path, found, unreadable)


def _symbols(tree: ast.AST, path: str, prefix: str = "") -> Iterator[Symbol]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, _Definition):
            kind = "class" if isinstance(node, ast.ClassDef) else "method" if prefix else "function"
            yield Symbol(prefix + node.name, kind, path, node.lineno)
            if isinstance(node, ast.ClassDef):
                yield from _symbols(node, path, f"{prefix}{node.name}.")


def _answer(path: str, found: list[Symbol], unreadable: list[str]) -> ToolAnswer:
    kept = found[:SYMBOL_LIMIT]
    lines = [str(symbol) for symbol in kept] or [f"No class or function in {path} fits."]
    if len(found) > SYMBOL_LIMIT:
        lines.append(f"... more than {SYMBOL_LIMIT}; narrow it down with path or name")
    if unreadable:
        lines.append(f"could not be parsed: {', '.join(unreadable[:10])}")
    structured = {
        "count": len(kept),
        "complete": len(found) <= SYMBOL_LIMIT,
        "symbols": [
            {"name": symbol.name, "kind": symbol.kind, "path": symbol.path, "line": symbol.line} for symbol in kept
        ],
    }
    return ToolAnswer("\n".join(lines), structured)


LIST_SYMBOLS = IdeTool(
    "list_symbols",
    _list_symbols,
    "Classes, functions and methods defined in a Python file or folder, with the line of each.",
    "search",
    "List symbols",
    {
        "type": "object",
        "properties": {
            "path": {"type": "string", "description": "file or folder, relative to the project", "default": "."},
            "name": {"type": "string", "description": "only names that contain this", "default": ""},
        },
        "additionalProperties": False,
    },
    categories=("navigation",),
    annotations={"readOnlyHint": True},
)
