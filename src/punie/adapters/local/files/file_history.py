"""The former contents of a session's files, in a folder of the session's own below the state directory."""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
import stat
import time
from contextlib import suppress
from typing import cast

import anyio
import anyio.to_thread
from attrs import asdict

from punie.adapters.local.files.writing import in_words
from punie.mechanics.files import NO_LINK, existing_file, opened_folder, read_file, read_path
from punie.ports.history import ABSENT, OTHER, FileChange, FileHistory, FileVersion

FILE_LIMIT_BYTES = 16_000_000
HISTORY_LIMIT_BYTES = 256_000_000
"""Bytes of contents that one session keeps; of later changes only the digests are kept."""

KEPT_DAYS = 30
"""Histories that no session has added to for so long are removed by the next session that keeps something."""

JOURNAL = "changes.jsonl"
_ID = re.compile(r"[A-Za-z0-9_-]{1,128}")


def history_folder(state: str, session_id: str) -> str | None:
    """The folder of a session's history; None for an id that is no plain name."""
    return os.path.join(state, "files", session_id) if _ID.fullmatch(session_id) else None


def forget_history(state: str, session_id: str) -> None:
    """Remove the history of a session. Blocks; never raises."""
    folder = history_folder(state, session_id)
    if folder is not None:
        shutil.rmtree(folder, ignore_errors=True)


class LocalFileHistory(FileHistory):
    """A journal and one file a content (named by its digest), readable by this user alone.

    Without a folder, everything stays in memory.
    """

    def __init__(self, folder: str | None) -> None:
        """`folder` is absolute; it is read at the first use and made when something is kept."""
        self._folder = folder
        self._changes: list[FileChange] | None = None
        self._blobs: dict[str, bytes] = {}
        self._size = 0
        self._alone = anyio.Lock()

    async def look(self, path: str) -> FileVersion:
        return await anyio.to_thread.run_sync(_look, path)

    async def written_s(self, path: str) -> float | None:
        try:
            return (await anyio.Path(path).lstat()).st_mtime
        except OSError:
            return None

    async def record(self, change: FileChange, was: FileVersion, left: FileVersion) -> None:
        async with self._alone:
            await anyio.to_thread.run_sync(self._record, change, was, left)

    async def changes(self) -> tuple[FileChange, ...]:
        async with self._alone:
            if self._changes is None:
                self._changes = await anyio.to_thread.run_sync(self._load)
            return tuple(self._changes)

    async def version(self, key: str) -> FileVersion | None:
        if key in {ABSENT, OTHER}:
            return FileVersion() if key == ABSENT else None
        mode, _, digest = key.partition(" ")
        data = self._blobs.get(digest)
        if data is None and self._folder is not None:
            data = await anyio.to_thread.run_sync(read_path, os.path.join(self._folder, digest), FILE_LIMIT_BYTES)
        found = None if data is None else FileVersion(int(mode, 8), data)
        return found if found is not None and found.key == key else None

    async def put(self, path: str, version: FileVersion) -> None:
        await anyio.to_thread.run_sync(_put, path, version)

    def _record(self, change: FileChange, was: FileVersion, left: FileVersion) -> None:
        if self._changes is None:
            self._changes = self._load()
        self._changes.append(change)
        with suppress(OSError):
            self._make()
            for version in (was, left):
                self._keep(version)
            if self._folder is not None:
                _append(os.path.join(self._folder, JOURNAL), json.dumps(asdict(change)).encode() + b"\n")

    def _load(self) -> list[FileChange]:
        if self._folder is None:
            return []
        lines = (read_path(os.path.join(self._folder, JOURNAL), FILE_LIMIT_BYTES) or b"").splitlines()
        found: list[FileChange] = []
        with suppress(OSError), os.scandir(self._folder) as entries:
            self._size = sum(entry.stat().st_size for entry in entries)
        for line in lines:
            with suppress(ValueError, TypeError):  # the last line of a process that was killed
                found.append(FileChange(**cast("dict[str, str]", json.loads(line))))
        return found

    def _make(self) -> None:
        if self._folder is not None and not os.path.isdir(self._folder):
            os.makedirs(self._folder, mode=0o700, exist_ok=True)
            _remove_old(os.path.dirname(self._folder))

    def _keep(self, version: FileVersion) -> None:
        data = version.data
        if data is None or self._size + len(data) > HISTORY_LIMIT_BYTES:
            return
        digest = version.key.partition(" ")[2]
        if self._folder is None:
            if digest not in self._blobs:
                self._blobs[digest] = data
                self._size += len(data)
            return
        path = os.path.join(self._folder, digest)
        if not os.path.exists(path):
            draft = f"{path}.{secrets.token_hex(4)}"
            _append(draft, data)
            os.rename(draft, path)
            self._size += len(data)


def _append(path: str, data: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | NO_LINK, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)


def _remove_old(parent: str) -> None:
    before_s = time.time() - KEPT_DAYS * 86_400
    with suppress(OSError), os.scandir(parent) as entries:
        for entry in entries:
            if _ID.fullmatch(entry.name) and entry.is_dir(follow_symlinks=False) and entry.stat().st_mtime < before_s:
                shutil.rmtree(entry.path, ignore_errors=True)


def _look(path: str) -> FileVersion:
    folder, name = os.path.split(path)
    try:
        with opened_folder(os.path.realpath(folder)) as inside:
            found = os.stat(name, dir_fd=inside, follow_symlinks=False)
            if stat.S_ISLNK(found.st_mode):
                return FileVersion(stat.S_IFLNK, os.fsencode(os.readlink(name, dir_fd=inside)))
            if not stat.S_ISREG(found.st_mode) or found.st_size > FILE_LIMIT_BYTES:
                return FileVersion(stat.S_IFMT(found.st_mode))
            data = read_file(inside, name, FILE_LIMIT_BYTES)
            return FileVersion(found.st_mode, data if len(data) <= FILE_LIMIT_BYTES else None)
    except (FileNotFoundError, NotADirectoryError):
        return FileVersion()
    except OSError:
        return FileVersion(stat.S_IFREG)


def _put(path: str, version: FileVersion) -> None:
    folder, name = os.path.split(path)
    with in_words(path, "restored"), opened_folder(os.path.realpath(folder), make=version.data is not None) as inside:
        if version.data is None:
            os.unlink(name, dir_fd=inside)
            return
        if not stat.S_ISLNK(version.mode):
            existing = _is_link(inside, name) or existing_file(inside, name)
            del existing  # raises where a folder or a device has taken the file's place
        draft = f".punie-{secrets.token_hex(8)}.tmp"
        try:
            if stat.S_ISLNK(version.mode):
                os.symlink(os.fsdecode(version.data), draft, dir_fd=inside)
            else:
                flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | NO_LINK
                with os.fdopen(os.open(draft, flags, 0o600, dir_fd=inside), "wb") as file:
                    file.write(version.data)
                    os.fchmod(file.fileno(), stat.S_IMODE(version.mode) & 0o777)
                    file.flush()
                    os.fsync(file.fileno())
            os.rename(draft, name, src_dir_fd=inside, dst_dir_fd=inside)
        except BaseException:
            with suppress(OSError):
                os.unlink(draft, dir_fd=inside)
            raise


def _is_link(folder: int, name: str) -> bool:
    try:
        return stat.S_ISLNK(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)
    except FileNotFoundError:
        return False
