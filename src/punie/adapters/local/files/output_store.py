"""Long results in a private folder that goes with its session."""

from __future__ import annotations

import os
import re
import threading
from contextlib import suppress
from types import TracebackType
from typing import Self

import anyio
import anyio.to_thread

from punie.adapters.local.files.private_folder import PrivateFolder
from punie.domain.tools.execution import cut
from punie.ports.workspace import OutputStore

TEXT_LIMIT_BYTES = 16_000_000
"""Of a longer text the head and the tail are kept; read_file reads no larger file."""

STORE_LIMIT_BYTES = 128_000_000
"""What one session keeps; beyond it the oldest goes."""

_NOT_A_NAME = re.compile(r"[^A-Za-z0-9_-]")
_FLAGS = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)


class LocalOutputStore(OutputStore):
    """A folder made at the first use and removed on leaving; an async context manager, lives as long as its session."""

    def __init__(self, folder: str) -> None:
        """`folder` is absolute, with links followed, and does not exist yet; nothing is touched."""
        self.folder = folder
        self._private = PrivateFolder(folder)
        self._sizes: dict[str, int] = {}
        self._lock = threading.Lock()  # files grow in threads; held for moments

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._lock:
            self._sizes.clear()
        if self._private.made:
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(self._private.remove)

    def file(self, name: str) -> KeptFile:
        """A file that somebody writes bit by bit; nothing is touched before the first bit."""
        return KeptFile(self, os.path.join(self.folder, f"{_NOT_A_NAME.sub('_', name)[:100]}.txt"))

    async def keep(self, name: str, text: str) -> str | None:
        """A cancel comes before it or after it; see the port."""
        file = self.file(name)
        return file.path if await anyio.to_thread.run_sync(_write_all, file, text) else None

    async def beginning(self, path: str, limit_bytes: int) -> str | None:
        if not self.holds(path):
            return None
        return await anyio.to_thread.run_sync(_beginning, path, limit_bytes)

    def holds(self, path: str) -> bool:
        return path in self._sizes

    def open_file(self, path: str) -> int:
        """A new file of this store as a descriptor, made by whoever writes it. Blocks; raises `OSError`."""
        self._private.make()
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | _FLAGS, 0o600)
        with self._lock:
            self._sizes.pop(path, None)
            self._sizes[path] = 0
        return descriptor

    def grown(self, path: str, size: int) -> bool:
        """A file is that large now: others may have to go; False where this one had to. Blocks for a moment."""
        with self._lock:
            if path not in self._sizes:
                return False
            self._sizes[path] = size
            gone = self._too_old()
        for old in gone:
            _remove(old)
        return path not in gone

    def forget(self, path: str) -> None:
        """Remove a file. Blocks for a moment; never raises."""
        with self._lock:
            ours = self._sizes.pop(path, None) is not None
        if ours:
            _remove(path)

    def _too_old(self) -> list[str]:
        """Forget the oldest until the rest fits; gives the paths to remove."""
        gone: list[str] = []
        while sum(self._sizes.values()) > STORE_LIMIT_BYTES and len(self._sizes) > 1:
            path = next(iter(self._sizes))
            del self._sizes[path]
            gone.append(path)
        return gone


class KeptFile:
    """One file of a store, from its first byte to its last; made by `LocalOutputStore.file`, used by one at a time."""

    def __init__(self, store: LocalOutputStore, path: str) -> None:
        self.path = path
        self.size = 0
        self._store = store
        self._descriptor: int | None = None

    @property
    def is_kept(self) -> bool:
        """Whether it is there: something was written, and the store did not let go of it to make room."""
        return self._store.holds(self.path)

    def write(self, data: bytes) -> None:
        """Add to its end. Blocks; raises `OSError` where the disk refuses, or the store let go of it."""
        if self._descriptor is None:
            self._descriptor = self._store.open_file(self.path)
        left = memoryview(data)
        while left:
            left = left[os.write(self._descriptor, left) :]
        self.size += len(data)
        if not self._store.grown(self.path, self.size):
            raise OSError(f"{self.path} had to make room")

    def close(self) -> None:
        """Nothing more is written."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def discard(self) -> None:
        """Close and remove it. Blocks for a moment; never raises."""
        self.close()
        self._store.forget(self.path)


def _write_all(file: KeptFile, text: str) -> bool:
    data = cut(text, TEXT_LIMIT_BYTES).encode("utf-8", "replace")
    try:
        file.write(data)
    except OSError:
        file.discard()
        return False
    file.close()
    return True


def _beginning(path: str, limit_bytes: int) -> str | None:
    try:
        with os.fdopen(os.open(path, os.O_RDONLY | _FLAGS), "rb") as file:
            return file.read(limit_bytes).decode("utf-8", "ignore")
    except OSError:
        return None


def _remove(path: str) -> None:
    with suppress(OSError):
        os.close(os.open(path, os.O_WRONLY | os.O_TRUNC | _FLAGS))  # free at once, though a writer may still hold it
    with suppress(OSError):
        os.unlink(path)
