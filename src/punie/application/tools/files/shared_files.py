"""The client's files where this machine's disk has them too."""

from __future__ import annotations

from attrs import frozen

from punie.domain.errors import ToolFailedError
from punie.ports.workspace import Disk, Workspace


@frozen
class SharedFiles(Workspace):
    """The client's files, of which an empty text is checked against the disk; lives as long as the session.

    Some clients answer the empty text for a file that does not exist. Where the disk has `cwd`, the session's absolute
    directory, and no such file, a whole text that is empty means that; so does an empty file that a person made in the
    editor and never saved.
    """

    client: Workspace
    disk: Disk
    cwd: str

    async def read_text(self, path: str, *, line_1based: int | None = None, limit_lines: int | None = None) -> str:
        text = await self.client.read_text(path, line_1based=line_1based, limit_lines=limit_lines)
        if text or path in (there := await self.disk.changed_at_s((path, self.cwd))) or self.cwd not in there:
            return text
        if line_1based is not None and await self.client.read_text(path):
            return text  # the lines are behind the end of a text that was never saved
        raise ToolFailedError(f"There is no such file: {path}. Use list_files to see what is there.")

    async def write_text(self, path: str, content: str) -> None:
        await self.client.write_text(path, content)
