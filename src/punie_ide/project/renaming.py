"""rename_symbol: one name becomes another in every Python file, or nothing changes at all."""

from __future__ import annotations

import ast
import io
import keyword
import tokenize
from typing import Any

import anyio
from attrs import frozen

from punie.api import ToldToModel, ToolFailedError, Workspace
from punie_ide.project.files import argument, files_below, required, shown, workspace_of
from punie_ide.tools import IdeTool, ToolAnswer, ToolContext

_PROSE = {tokenize.STRING, tokenize.COMMENT, getattr(tokenize, "FSTRING_MIDDLE", tokenize.STRING)}


@frozen
class Change:
    """One file: its text before and after, and the number of places that differ."""

    path: str
    before: str
    after: str
    places: int


async def _rename_symbol(arguments: dict[str, Any], context: ToolContext) -> ToolAnswer:
    old, new = required(arguments, "old_name"), required(arguments, "new_name")
    _require_names(old, new)
    changes, mentions = await _plan(old, new, argument(arguments, "path", "."), context)
    await _apply(changes, workspace_of(context))
    places = sum(change.places for change in changes)
    files = [shown(context.cwd, change.path) for change in changes]
    lines = [f"Renamed {old} to {new}: {places} places in {len(files)} files: {', '.join(files)}."]
    if mentions:
        lines.append(f"Strings and comments still say {old}, look at: {', '.join(mentions[:20])}.")
    structured = {"old_name": old, "new_name": new, "places": places, "files": files, "mentions": mentions}
    return ToolAnswer("\n".join(lines), structured)


def _require_names(old: str, new: str) -> None:
    for name in (old, new):
        if not name.isidentifier() or keyword.iskeyword(name):
            raise ToolFailedError(f"{name!r} is not a Python name, so nothing was renamed.")
    if old == new:
        raise ToolFailedError("Both names are the same, so nothing was renamed.")


async def _plan(old: str, new: str, path: str, context: ToolContext) -> tuple[list[Change], list[str]]:
    """All changes, checked before the first is made, and the places that only mention the old name."""
    files = await files_below(context.cwd, path, (".py", ".pyi"))
    if not files.complete:
        raise ToolFailedError("The project has too many files to rename in all of them. Name a folder in path.")
    changes: list[Change] = []
    mentions: list[str] = []
    for file in files.paths:
        before = await workspace_of(context).read_text(file)
        if old not in before and new not in before:
            continue
        after, places, lines = _renamed(before, old, new, shown(context.cwd, file))
        mentions.extend(f"{shown(context.cwd, file)}:{line}" for line in lines)
        if places:
            changes.append(Change(file, before, after, places))
    if not changes:
        raise ToolFailedError(f"No Python code in {path} uses the name {old}, so nothing was renamed.")
    return changes, mentions


def _renamed(text: str, old: str, new: str, where: str) -> tuple[str, int, list[int]]:
    """The text with the name replaced, the number of places, and the lines of strings and comments that mention it."""
    lines = io.StringIO(text, newline="").readlines()  # lines as the tokenizer counts them
    mentions: list[int] = []
    places: list[tuple[int, int]] = []
    for token in _tokens(text, where):
        if token.type == tokenize.NAME and token.string == new:
            raise ToolFailedError(f"{where}:{token.start[0]} uses the name {new} already, so nothing was renamed.")
        if token.type == tokenize.NAME and token.string == old:
            places.append(token.start)
        elif token.type in _PROSE and old in token.string:
            mentions.append(token.start[0])
    for row, column in reversed(places):
        line = lines[row - 1]
        lines[row - 1] = line[:column] + new + line[column + len(old) :]
    after = "".join(lines)
    _require_parses(after, where)
    return after, len(places), mentions


def _tokens(text: str, where: str) -> list[tokenize.TokenInfo]:
    try:
        return list(tokenize.generate_tokens(io.StringIO(text, newline="").readline))
    except (tokenize.TokenError, SyntaxError) as error:
        raise ToolFailedError(
            f"{where} is not valid Python ({error}), so nothing was renamed. Mend it first."
        ) from None


def _require_parses(text: str, where: str) -> None:
    try:
        ast.parse(text)
    except (SyntaxError, ValueError, RecursionError) as error:
        raise ToolFailedError(f"{where} would not be valid Python afterwards ({error}); nothing was renamed.") from None


async def _apply(changes: list[Change], workspace: Workspace) -> None:
    """Write all files; where one cannot be written, restore those before it."""
    written: list[Change] = []
    try:
        for change in changes:
            await workspace.write_text(change.path, change.after)
            written.append(change)
    except BaseException as error:
        with anyio.CancelScope(shield=True):
            for change in reversed(written):
                await workspace.write_text(change.path, change.before)
        if isinstance(error, ToldToModel):
            raise ToolFailedError(f"Nothing was renamed, all files are as they were: {error}") from error
        raise


RENAME_SYMBOL = IdeTool(
    "rename_symbol",
    _rename_symbol,
    "Rename a class, function, method or variable in every Python file that uses the name. All files or none.",
    "edit",
    "Rename symbol",
    {
        "type": "object",
        "properties": {
            "old_name": {"type": "string", "minLength": 1},
            "new_name": {"type": "string", "minLength": 1},
            "path": {"type": "string", "description": "folder to stay in", "default": "."},
        },
        "required": ["old_name", "new_name"],
        "additionalProperties": False,
    },
    requires_permission=True,
    categories=("refactoring",),
    annotations={"destructiveHint": False, "idempotentHint": False},
)
