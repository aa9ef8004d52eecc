"""The files of a project as the index of an IDE knows them, and the arguments of tools that work on them.

The agent has checked the arguments against the schema; an agent that did not gets a sentence in place of a crash.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeVar

import anyio
from attrs import frozen

from punie.api import Terminals, ToolFailedError, Workspace, is_inside, shown_path
from punie_ide.tools import ToolContext
from shellsight.secret_names import is_secret

SKIPPED_FOLDERS = frozenset({"node_modules", "__pycache__", "build", "dist", "site-packages", "venv"})
FILE_LIMIT = 5_000
SIZE_LIMIT_BYTES = 1_000_000


@frozen
class ProjectFiles:
    """Files below a path, absolute and in order; `complete` is False where the bound cut the list short."""

    paths: tuple[str, ...]
    complete: bool = True


def absolute(cwd: str, path: str) -> str:
    """The absolute path of a file that a model named, with links followed.

    Raises `ToolFailedError` for a path outside the project, and for files that usually hold keys or passwords.
    """
    root = Path(cwd).resolve()
    found = (root / path).resolve()
    if not is_inside(str(found), (str(root),)):
        raise ToolFailedError(f"{path} is outside the project {cwd}. Give a path inside it.")
    if is_secret(str(found)) or is_secret(path):
        raise ToolFailedError(f"{path} may hold secrets, so the IDE's tools leave it alone.")
    return str(found)


def shown(cwd: str, path: str) -> str:
    """The path relative to the project, as people write it."""
    return shown_path(path, str(Path(cwd).resolve()))


async def files_below(cwd: str, path: str, suffixes: tuple[str, ...]) -> ProjectFiles:
    """The files with these suffixes below a path of the project, or that file itself; hidden folders are skipped.

    Raises `ToolFailedError` where no such file or folder exists.
    """
    start = absolute(cwd, path)
    return await anyio.to_thread.run_sync(_files_below, start, path, suffixes, abandon_on_cancel=True)


def _files_below(start: str, asked: str, suffixes: tuple[str, ...]) -> ProjectFiles:
    if Path(start).is_file():
        return ProjectFiles((start,))
    if not Path(start).is_dir():
        raise ToolFailedError(f"There is no file or folder {asked} in the project. search_project finds names.")
    found: list[str] = []
    for file in _walk(start):
        if len(found) >= FILE_LIMIT:
            return ProjectFiles(tuple(found), complete=False)
        if file.endswith(suffixes) and not is_secret(file):
            found.append(file)
    return ProjectFiles(tuple(found))


def _walk(start: str) -> Iterator[str]:
    for folder, folders, files in os.walk(start):
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name not in SKIPPED_FOLDERS)
        for file in (Path(folder, name) for name in sorted(files)):
            if _is_small_file(file):
                yield str(file)


def _is_small_file(file: Path) -> bool:
    try:
        known = file.lstat()
    except OSError:
        return False  # removed since it was listed
    return stat.S_ISREG(known.st_mode) and known.st_size <= SIZE_LIMIT_BYTES


T = TypeVar("T", str, int)


def argument(arguments: dict[str, Any], name: str, default: T) -> T:
    """The argument of that name, of the default's type."""
    value = arguments.get(name, default)
    if type(value) is not type(default):
        raise ToolFailedError(f"The argument {name} has the wrong type. Look at the tool's schema.")
    return value


def required(arguments: dict[str, Any], name: str) -> str:
    """A text argument that must be present and not empty."""
    value = argument(arguments, name, "")
    if not value:
        raise ToolFailedError(f"The argument {name} is missing or empty. Look at the tool's schema.")
    return value


def workspace_of(context: ToolContext) -> Workspace:
    """The IDE's files. Raises `ToolFailedError` without any."""
    if context.workspace is None:
        raise ToolFailedError("This IDE was opened without files.")
    return context.workspace


def terminals_of(context: ToolContext) -> Terminals:
    """The IDE's terminals. Raises `ToolFailedError` without any."""
    if context.terminals is None:
        raise ToolFailedError("This IDE was opened without terminals.")
    return context.terminals
