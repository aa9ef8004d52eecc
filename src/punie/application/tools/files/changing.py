"""Changes of several files carried out together, by this machine or through a client."""

from __future__ import annotations

from attrs import frozen

from punie.application.tools.files.file_memory import ServedFiles, require_unchanged, text_or_none
from punie.domain.errors import ToldToModel, ToolFailedError


@frozen
class FileChange:
    """The change of one file: its whole text before (None: no file) and after (None: removed).

    `what` says how it changes, in a word; `count` is the number of replacements or hunks.
    """

    path: str
    before: str | None
    after: str | None
    what: str
    count: int = 0

    @property
    def said(self) -> str:
        """The change in words."""
        return f"{self.count} {self.what}" if self.count else self.what

    @property
    def counted(self) -> dict[str, object]:
        """The count by its name; empty where nothing is counted."""
        return {self.what: self.count} if self.count else {}


async def carry_out(files: ServedFiles, changes: list[FileChange]) -> None:
    """Write all of the changes, or none, and remember them; the caller holds the files.

    On this machine that holds even if the process is killed. A client writes one file after another: where one fails,
    those before it are written back, which a client that dies meanwhile does not do. Raises `ToldToModel`.
    """
    for change in changes:
        require_unchanged(change.path, change.before, await text_or_none(files.workspace, change.path))
    if files.disk is not None and not files.decoded_elsewhere:
        await files.disk.change({change.path: change.after for change in changes})
    else:
        await _one_by_one(files, changes)
    for change in changes:
        files.memory.wrote(change.path, change.before, change.after)


async def _one_by_one(files: ServedFiles, changes: list[FileChange]) -> None:
    """Files are removed last: no client can do that, so this machine does, if the disk has what the client read."""
    if any(change.after is None for change in changes) and files.disk is None:
        raise ToolFailedError("The client cannot remove files, and this machine may not. Nothing was written.")
    done: list[FileChange] = []
    try:
        for change in sorted(changes, key=lambda change: change.after is None):
            await _put(files, change.path, change.before, change.after)
            done.append(change)
    except ToldToModel as error:
        stuck = [change.path for change in reversed(done) if not await _taken_back(files, change)]
        said = f"These files were written and could not be taken back: {', '.join(stuck)}." if stuck else ""
        raise ToolFailedError(f"{error} {said or 'Nothing was changed.'}" if len(changes) > 1 else str(error)) from None


async def _taken_back(files: ServedFiles, change: FileChange) -> bool:
    try:
        await _put(files, change.path, change.after, change.before)
    except ToldToModel:
        return False
    return True


async def _put(files: ServedFiles, path: str, before: str | None, after: str | None) -> None:
    if after is not None:
        await files.workspace.write_text(path, after)
        return
    if files.disk is None or await files.disk.read_text(path) != before:
        raise ToolFailedError(f"{path} is not the same on this machine's disk, so it was not removed.")
    await files.disk.change({path: None})
