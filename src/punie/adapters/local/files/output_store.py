"""Long results in a private folder that lives as long as its session."""

from __future__ import annotations

import os
import re
import tempfile
import threading
from contextlib import suppress
from types import TracebackType
from typing import Self

import anyio
import anyio.to_thread

from punie.adapters.local.files.private_folder import OF_PROGRAM, PrivateFolder
from punie.domain.tools.execution import cut
from punie.mechanics.files import NO_LINK, read_path
from punie.ports.workspace import OutputStore

TEXT_LIMIT_BYTES = 16_000_000
"""Of a longer text only head and tail are kept; read_file reads no larger file."""

STORE_LIMIT_BYTES = 128_000_000
"""Bytes that one session keeps; beyond that the oldest files are removed."""

_NOT_A_NAME = re.compile(r"[^A-Za-z0-9_-]")


def temporary_folder() -> str:
    """The folder of temporary files, with links followed; also where no file can be written anywhere."""
    try:
        return os.path.realpath(tempfile.gettempdir())
    except OSError:  # the disk is full: a session runs without keeping long results
        return os.path.realpath(os.environ.get("TMPDIR") or os.path.join(os.sep, "tmp"))


class LocalOutputStore(OutputStore):
    """A folder that is made at the first use and removed at the end; an async context manager, one for each session."""

    def __init__(self, folder: str) -> None:
        """`folder` is absolute, with links followed, and does not exist yet; nothing is touched."""
        self.folder = folder
        self.private = PrivateFolder(folder)
        self._sizes: dict[str, int] = {}
        self._lock = threading.Lock()  # files grow in threads; held for moments

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._lock:
            self._sizes.clear()
        if self.private.made:
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(self.private.remove)

    def file(self, name: str) -> KeptFile:
        """A file to be written in pieces; nothing is touched before the first."""
        return KeptFile(self, os.path.join(self.folder, f"{_NOT_A_NAME.sub('_', name)[:100]}.txt"))

    async def keep(self, name: str, text: str) -> str | None:
        file = self.file(name)
        return file.path if await anyio.to_thread.run_sync(_write_all, file, text) else None

    async def beginning(self, path: str, limit_bytes: int) -> str | None:
        if not self.holds(path):
            return None
        return await anyio.to_thread.run_sync(_beginning, path, limit_bytes)

    def holds(self, path: str) -> bool:
        return path in self._sizes

    def folder_of_program(self) -> str:
        """A new folder for the temporary files of one program. Blocks for a moment; raises `OSError`."""
        self.private.make()
        return tempfile.mkdtemp(prefix=OF_PROGRAM, dir=self.folder)

    def open_file(self, path: str) -> int:
        """A descriptor for writing a new file of this store. Blocks; raises `OSError`."""
        self.private.make()
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | NO_LINK, 0o600)
        with self._lock:
            self._sizes.pop(path, None)
            self._sizes[path] = 0
        return descriptor

    def grown(self, path: str, size: int) -> bool:
        """Note the size of a file and remove the oldest files beyond the limit; False where this one was removed."""
        with self._lock:
            if path not in self._sizes:
                return False
            self._sizes[path] = size
            gone: list[str] = []
            while sum(self._sizes.values()) > STORE_LIMIT_BYTES and len(self._sizes) > 1:
                gone.append(next(iter(self._sizes)))
                del self._sizes[gone[-1]]
        for old in gone:
            _remove(old)
        return path not in gone

    def forget(self, path: str) -> None:
        """Remove a file. Blocks for a moment; never raises."""
        with self._lock:
            ours = self._sizes.pop(path, None) is not None
        if ours:
            _remove(path)


class KeptFile:
    """One file of a store, for one writer at a time; lives until it is closed or discarded."""

    def __init__(self, store: LocalOutputStore, path: str) -> None:
        self.path = path
        self.size = 0
        self._store = store
        self._descriptor: int | None = None

    @property
    def is_kept(self) -> bool:
        """Whether the file exists: something was written, and the store did not remove it to make room."""
        return self._store.holds(self.path)

    def write(self, data: bytes) -> None:
        """Append the bytes. Blocks; raises `OSError` where the disk refuses, or the store removed the file."""
        if self._descriptor is None:
            self._descriptor = self._store.open_file(self.path)
        left = memoryview(data)
        while left:
            left = left[os.write(self._descriptor, left) :]
        self.size += len(data)
        if not self._store.grown(self.path, self.size):
            raise OSError(f"{self.path} had to make room")

    def close(self) -> None:
        """Close the file; nothing more is written."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def discard(self) -> None:
        """Close and remove the file. Blocks for a moment; never raises."""
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
    content = read_path(path, limit_bytes)
    return None if content is None else content[:limit_bytes].decode("utf-8", "ignore")


def _remove(path: str) -> None:
    with suppress(OSError):
        os.close(os.open(path, os.O_WRONLY | os.O_TRUNC | NO_LINK))  # free at once, though a writer may still hold it
    with suppress(OSError):
        os.unlink(path)
