"""The files of a session as the tools on files get them, and what all of those tools do."""

from __future__ import annotations

from attrs import frozen

from punie.application.tools.files.file_memory import FileMemory
from punie.application.tools.session_tool import CallContext
from punie.domain.errors import ToldToModel, ToolFailedError
from punie.domain.values.paths import shown_path
from punie.ports.workspace import OutputStore, Workspace


@frozen
class KeptOutputs:
    """Long results of the session, and the workspace that reads them; lives as long as the session."""

    store: OutputStore
    workspace: Workspace


@frozen
class ServedFiles:
    """The files of one session as one server of them gives them; lives as long as the tools that are made of it.

    `workspace` reads and writes. `before` tells what a write replaces, None where nothing can. `memory` is what the
    session knows of its files. `decoded_elsewhere` says that somebody else turns bytes into text. `kept` are the long
    results that lie outside the project, None where they are not to be read.
    """

    workspace: Workspace
    before: Workspace | None
    memory: FileMemory
    decoded_elsewhere: bool = False
    kept: KeptOutputs | None = None


def path_of(context: CallContext) -> str:
    """Where the call's path leads. Raises `ToolFailedError` where it named none."""
    if not context.locations:
        raise ToolFailedError("path is empty. Give the path of a file.")
    return context.locations[0].path


def folder_of(context: CallContext) -> str:
    """Where the call's path leads; the session's directory where it named none."""
    return context.locations[0].path if context.locations else context.cwd


def relative(path: str, cwd: str) -> str:
    """A path of a listing as the model reads it: from the session's directory, a folder with a slash at its end."""
    shown = shown_path(path.rstrip("/") or path, cwd)
    return f"{shown}/" if path.endswith("/") and shown != "/" else shown


async def text_or_none(workspace: Workspace, path: str) -> str | None:
    """The whole text; None where there is no such file, or one that is no text."""
    try:
        return await workspace.read_text(path)
    except ToldToModel:
        return None
