"""list_symbols: the classes and functions of a Python file or folder, from its syntax tree."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from attrs import frozen

from punie.api import ToldToModel
from punie_ide.project.arguments import argument, workspace_of
from punie_ide.project.files import files_below, shown
from punie_ide.tools import IdeTool, ToolAnswer, ToolContext

SYMBOL_LIMIT = 200

_Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


@frozen
class Symbol:
    """One class, function or method: its dotted name, and where it is defined."""

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
