"""Long results in a private folder that goes with its session."""

from __future__ import annotations

import os
import re
import shutil
from functools import partial
from types import TracebackType
from typing import Self

import anyio
import anyio.to_thread

from punie.ports.output_store import OutputStore

TEXT_LIMIT_BYTES = 16_000_000
"""Of a longer text the beginning is kept; read_file reads no larger file."""

STORE_LIMIT_BYTES = 128_000_000
"""What one session keeps; beyond it the oldest goes."""

_NOT_A_NAME = re.compile(r"[^A-Za-z0-9_-]")


class LocalOutputStore(OutputStore):
    """A folder made at the first use and removed on leaving; an async context manager, lives as long as its session."""

    def __init__(self, folder: str) -> None:
        """`folder` is absolute, with links followed, and does not exist yet; nothing is touched."""
        self.folder = folder
        self._sizes: dict[str, int] = {}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._sizes:
            self._sizes.clear()
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(partial(shutil.rmtree, self.folder, ignore_errors=True))

    async def keep(self, name: str, text: str) -> str | None:
        """A cancel comes before it or after it; see the port."""
        path = os.path.join(self.folder, f"{_NOT_A_NAME.sub('_', name)[:100]}.txt")
        try:
            size = await anyio.to_thread.run_sync(self._write, path, text)
        except OSError:
            return None
        self._sizes.pop(path, None)
        self._sizes[path] = size
        await anyio.to_thread.run_sync(_remove, self._too_old())
        return path

    def holds(self, path: str) -> bool:
        return path in self._sizes

    def _write(self, path: str, text: str) -> int:
        data = text[:TEXT_LIMIT_BYTES].encode("utf-8", "replace")[:TEXT_LIMIT_BYTES]
        data = data.decode("utf-8", "ignore").encode()  # no torn character at the end
        os.makedirs(self.folder, mode=0o700, exist_ok=True)
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
        with os.fdopen(os.open(path, flags, 0o600), "wb") as file:
            file.write(data)
        return len(data)

    def _too_old(self) -> list[str]:
        """Forget the oldest until the rest fits; gives the paths to remove."""
        gone: list[str] = []
        while sum(self._sizes.values()) > STORE_LIMIT_BYTES and len(self._sizes) > 1:
            path = next(iter(self._sizes))
            del self._sizes[path]
            gone.append(path)
        return gone


def _remove(paths: list[str]) -> None:
    for path in paths:
        try:
            os.unlink(path)
        except OSError:
            continue
