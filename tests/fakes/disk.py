"""The disk below a fake client's files, in memory."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from punie.domain.errors import ToolFailedError
from punie.ports.workspace import Disk
from tests.fakes.client import FakeClient


class FakeDisk(Disk):
    """The files of a client as this machine's disk has them; `fails` is a path that cannot be changed."""

    def __init__(self, client: FakeClient | None = None, fails: str = "") -> None:
        self.client = client or FakeClient()
        self.fails = fails

    async def read_text(self, path: str, *, line_1based: int | None = None, limit_lines: int | None = None) -> str:
        return await self.client.read_text(path, line_1based=line_1based, limit_lines=limit_lines)

    async def write_text(self, path: str, content: str) -> None:
        await self.client.write_text(path, content)

    async def change(self, texts: Mapping[str, str | None]) -> None:
        for path, text in texts.items():
            if path == self.fails or (text is None and path not in self.client.files):
                raise ToolFailedError(f"{path} cannot be changed.")
        for path, text in texts.items():
            if text is None:
                del self.client.files[path]
            else:
                await self.client.write_text(path, text)

    async def changed_at_s(self, paths: Iterable[str]) -> Mapping[str, float]:
        """A file changed before anybody looked."""
        return {path: -math.inf for path in paths if path in self.client.files}
