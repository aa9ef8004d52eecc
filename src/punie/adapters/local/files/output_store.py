"""Long results in a private folder that lives as long as its session."""

from __future__ import annotations

import os
import re
import shutil
import stat
import tempfile
import threading
import time
from contextlib import suppress
from types import TracebackType
from typing import Self

import anyio
import anyio.to_thread

from punie.domain.tools.execution import cut
from punie.mechanics.files import LIST_FLAGS, NO_LINK, NO_WAIT, read_path
from punie.ports.workspace import OutputStore

LOCK = "lock"
"""The file that the owner of a folder holds locked; the kernel frees the lock however the owner ends."""

OF_PROGRAM = "box-"
"""The beginning of the names of folders for a program's temporary files."""

SWEEP_LIMIT_S = 0.25
"""How long the first use of a folder may remove abandoned ones; the next session goes on with the rest."""

_NAME = re.compile(r"punie-[0-9a-f]{32}")
_LOCK_FLAGS = os.O_RDWR | NO_LINK | NO_WAIT


class PrivateFolder:
    """A folder for this user alone, made when it is needed; lives as long as its session. Its methods block."""

    def __init__(self, path: str) -> None:
        """`path` is absolute and does not exist yet; nothing is touched."""
        self.path = path
        self.made = False
        self._removed = False
        self._lock: int | None = None
        self._making = threading.Lock()

    def make(self) -> None:
        """Make the folder where it is missing, and remove folders that killed processes left. Raises `OSError`."""
        with self._making:
            if self._removed:
                raise FileNotFoundError(f"{self.path} went with its session")
            if os.path.isdir(self.path):
                return
            self._make(f"{self.path}.new")
            remove_abandoned(os.path.dirname(self.path))

    def _make(self, building: str) -> None:
        """The folder gets its own name only once it is locked."""
        self._unlock()
        os.makedirs(building, mode=0o700)
        try:
            self._lock = _locked(building)
            os.rename(building, self.path)
        except OSError:
            shutil.rmtree(building, ignore_errors=True)
            self._unlock()
            raise
        self.made = True

    def remove(self) -> None:
        """Remove the folder with all its files, for good; never raises."""
        with self._making:
            self._removed = True
            shutil.rmtree(self.path, ignore_errors=True)
            self._unlock()

    def _unlock(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def remove_abandoned(parent: str) -> None:
    """Remove the folders of this user's sessions whose process is gone; never raises, ends after `SWEEP_LIMIT_S`.

    A folder is abandoned where its name is one of Punie's, it is no link, it belongs to this user alone, and it holds
    files only, among them a lock that no process holds, and folders of programs. Anything else is left as it is.
    """
    until_s = time.monotonic() + SWEEP_LIMIT_S
    try:
        with os.scandir(parent) as entries:
            for entry in entries:
                if time.monotonic() > until_s:
                    return
                if _NAME.fullmatch(entry.name):
                    _remove_if_abandoned(entry.path, until_s)
    except OSError:
        return


def _remove_if_abandoned(path: str, until_s: float) -> None:
    try:
        folder = os.open(path, LIST_FLAGS)
    except OSError:
        return
    try:
        if _is_ours(os.fstat(folder)):
            _empty_if_abandoned(folder, until_s)
            os.rmdir(path)  # refuses unless it is empty
    except OSError:
        return
    finally:
        os.close(folder)


def _empty_if_abandoned(folder: int, until_s: float) -> None:
    lock = _taken(os.open(LOCK, _LOCK_FLAGS, dir_fd=folder))
    if lock is None:
        return
    try:
        names = os.listdir(folder)
        for name in [name for name in names if name.startswith(OF_PROGRAM)]:
            names.remove(name)
            shutil.rmtree(name, ignore_errors=True, dir_fd=folder)
        if not all(stat.S_ISREG(os.lstat(name, dir_fd=folder).st_mode) for name in names):
            return
        for name in sorted(names, key=LOCK.__eq__):  # the lock last: an unfinished job is found again
            if time.monotonic() > until_s:
                return
            os.unlink(name, dir_fd=folder)
    finally:
        os.close(lock)


def _is_ours(found: os.stat_result) -> bool:
    return found.st_uid == os.geteuid() and stat.S_IMODE(found.st_mode) == 0o700


def _locked(folder: str) -> int | None:
    """The new lock file of a folder, locked; None, and no file, where this machine has no such locks."""
    path = os.path.join(folder, LOCK)
    lock = _taken(os.open(path, _LOCK_FLAGS | os.O_CREAT | os.O_EXCL, 0o600))
    if lock is None:
        os.unlink(path)
    return lock


def _taken(descriptor: int) -> int | None:
    """The descriptor with its file locked; None, and the descriptor closed, where that is not possible."""
    try:
        import fcntl

        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (ImportError, OSError):
        os.close(descriptor)
        return None
    return descriptor


TEXT_LIMIT_BYTES = 16_000_000
"""Of a longer text only head and tail are kept; read_file reads no larger file."""

STORE_LIMIT_BYTES = 128_000_000
"""Bytes that one session keeps; beyond that the oldest files are removed."""

_NOT_A_NAME = re.compile(r"[^A-Za-z0-9_-]")


class LocalOutputStore(OutputStore):
    """A folder that is made at the first use and removed at the end; an async context manager, one for each session."""

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
        self._private.make()
        return tempfile.mkdtemp(prefix=OF_PROGRAM, dir=self.folder)

    def open_file(self, path: str) -> int:
        """A descriptor for writing a new file of this store. Blocks; raises `OSError`."""
        self._private.make()
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
        """Forget the oldest files until the rest fits; return the paths to remove."""
        gone: list[str] = []
        while sum(self._sizes.values()) > STORE_LIMIT_BYTES and len(self._sizes) > 1:
            path = next(iter(self._sizes))
            del self._sizes[path]
            gone.append(path)
        return gone


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
