"""The former contents of a session's files, in a folder of the session's own below the state directory."""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
import stat
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, cast

import anyio
import anyio.to_thread
from attrs import asdict

from punie.adapters.local.files.taking_back import PENDING, in_order, read_pending, write_pending
from punie.adapters.local.files.tree_scan import TreeScanner, stamp_of
from punie.adapters.local.files.writing import Draft, in_words, named_draft, removed
from punie.domain.errors import ToolFailedError
from punie.mechanics.files import NO_LINK, opened_folder, read_file, read_path
from punie.ports.history import (
    ABSENT,
    FOLDER,
    OTHER,
    FileChange,
    FileHistory,
    FileVersion,
    Move,
    Stamp,
    TreeScan,
)

FILE_LIMIT_BYTES = 16_000_000
HISTORY_LIMIT_BYTES = 256_000_000
"""Bytes that one session keeps; a later change whose contents are not kept cannot be taken back."""

AHEAD_LIMIT_BYTES = HISTORY_LIMIT_BYTES // 2
KEEP_LIMIT_S = 3.0
"""The part of the bytes, and the time a command, for contents that are kept before they are changed."""

KEPT_DAYS = 30
ALL_LIMIT_BYTES = 2_000_000_000
"""How long a history is kept after its last change, and how large all together may be; the oldest are removed first.

Both are looked at when another session makes its first change.
"""

JOURNAL, ACCEPTED, UNDO = "changes.jsonl", "accepted.jsonl", "undo"
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

    def __init__(self, folder: str | None, draft: Draft = named_draft, scanner: TreeScanner | None = None) -> None:
        """`folder` is absolute; it is read at the first use and made when something is kept. `draft` names drafts.

        `scanner` looks at the session's directories; without one there are none.
        """
        self._folder = folder
        self._draft = draft
        self._scanner = scanner or TreeScanner(())
        self._changes: list[FileChange] | None = None
        self._blobs: dict[str, bytes] = {}
        self._size = 0
        self._seen: dict[str, str] = {}
        self._alone = anyio.Lock()

    async def look(self, path: str, limit_bytes: int | None = None) -> FileVersion:
        return await anyio.to_thread.run_sync(_look, path, min(limit_bytes or FILE_LIMIT_BYTES, FILE_LIMIT_BYTES))

    async def scan(self, also: Iterable[str] = ()) -> TreeScan:
        return await anyio.to_thread.run_sync(self._scanner.scan, tuple(also))

    async def keep(self, paths: Iterable[str]) -> Mapping[str, tuple[Stamp, str]]:
        async with self._alone:
            return await anyio.to_thread.run_sync(self._keep_all, tuple(paths))

    async def record(self, change: FileChange, was: FileVersion, left: FileVersion) -> None:
        async with self._alone:
            await anyio.to_thread.run_sync(self._record, change, was, left)

    async def changes(self) -> tuple[FileChange, ...]:
        async with self._alone:
            if self._changes is None:
                self._changes = await anyio.to_thread.run_sync(self._load)
            return tuple(self._changes)

    async def version(self, key: str) -> FileVersion | None:
        if key in {ABSENT, FOLDER, OTHER}:
            return FileVersion() if key == ABSENT else FileVersion(stat.S_IFDIR) if key == FOLDER else None
        mode, _, digest = key.partition(" ")
        data = self._blobs.get(digest)
        if data is None and self._folder is not None:
            data = await anyio.to_thread.run_sync(read_path, os.path.join(self._folder, digest), FILE_LIMIT_BYTES)
        found = None if data is None else FileVersion(int(mode, 8), data)
        return found if found is not None and found.key == key else None

    async def put(self, path: str, version: FileVersion) -> None:
        await anyio.to_thread.run_sync(_put, path, version, self._draft)

    async def accept(self, seen: Mapping[str, str]) -> None:
        async with self._alone:
            await anyio.to_thread.run_sync(self._accept, seen)

    async def accepted(self) -> Mapping[str, str]:
        async with self._alone:
            return dict(await anyio.to_thread.run_sync(self._accepted))

    def _accept(self, seen: Mapping[str, str]) -> None:
        if self._folder is None:
            self._seen.update(seen)
            return
        with suppress(OSError):
            os.makedirs(self._folder, mode=0o700, exist_ok=True)
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | NO_LINK
            with os.fdopen(os.open(os.path.join(self._folder, ACCEPTED), flags, 0o600), "wb") as file:
                file.write(b"".join(json.dumps(pair).encode() + b"\n" for pair in seen.items()))

    def _accepted(self) -> dict[str, str]:
        if self._folder is not None:
            for line in (read_path(os.path.join(self._folder, ACCEPTED), FILE_LIMIT_BYTES) or b"").splitlines():
                with suppress(ValueError, TypeError):
                    path, key = cast("list[object]", json.loads(line))
                    self._seen[str(path)] = str(key)
        return self._seen

    async def take_back(self, turn: str, moves: Sequence[Move], committed: Callable[[], Awaitable[None]]) -> None:
        versions = {move.to: await self.version(move.to) for move in moves}
        pending = None if self._folder is None else os.path.join(self._folder, PENDING)
        async with self._alone:
            await anyio.to_thread.run_sync(self._check, moves)
            if pending is not None:
                await anyio.to_thread.run_sync(write_pending, pending, turn, moves)
            try:
                await committed()
            except BaseException:
                if pending is not None:
                    os.unlink(pending)
                raise
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(self._take_back, turn, moves, versions)
                if pending is not None:
                    os.unlink(pending)

    async def recover(self, committed: Callable[[str], Awaitable[bool]]) -> None:
        pending = None if self._folder is None else os.path.join(self._folder, PENDING)
        if pending is None:
            return
        turn, moves = await anyio.to_thread.run_sync(read_pending, pending)
        if moves and await committed(turn):
            versions = {move.to: await self.version(move.to) for move in moves}
            async with self._alone:
                await anyio.to_thread.run_sync(self._take_back, turn, moves, versions)
        with suppress(OSError):
            os.unlink(pending)

    def _check(self, moves: Sequence[Move]) -> None:
        """Keep what the files hold, so that this can be undone too. Raises `ToolFailedError` for a changed one."""
        self._make()
        for move in moves:
            version = _look(move.path, FILE_LIMIT_BYTES)
            if version.key != move.now:
                raise ToolFailedError(f"{move.path} was changed meanwhile, so nothing was taken back. Look again.")
            if version.data is not None:
                with suppress(OSError):
                    self._keep(version.key.partition(" ")[2], version.data)

    def _take_back(self, turn: str, moves: Sequence[Move], versions: Mapping[str, FileVersion | None]) -> None:
        """Do what is not done yet; a file that holds something else by now stays."""
        if self._changes is None:
            self._changes = self._load()
        done = {change.path for change in self._changes if change.turn == turn and change.tool == UNDO}
        for move in in_order(moves):
            version, now = versions.get(move.to), _look(move.path, FILE_LIMIT_BYTES).key
            if version is None or now not in {move.now, move.to}:
                continue
            if now != move.to:
                with suppress(ToolFailedError):  # a folder that is not empty; a file that may not be written
                    _put(move.path, version, self._draft)
            if move.path not in done and _look(move.path, FILE_LIMIT_BYTES).key == move.to:
                self._record(FileChange(turn, move.path, move.now, move.to, "tool", UNDO), FileVersion(), FileVersion())

    def _record(self, change: FileChange, was: FileVersion, left: FileVersion) -> None:
        if self._changes is None:
            self._changes = self._load()
        self._changes.append(change)
        with suppress(OSError):
            self._make()
            for version in (was, left):
                if version.data is not None:
                    self._keep(version.key.partition(" ")[2], version.data)
            self._keep(JOURNAL, json.dumps(asdict(change)).encode() + b"\n")

    def _make(self) -> None:
        if self._folder is not None and not os.path.isdir(self._folder):
            os.makedirs(self._folder, mode=0o700, exist_ok=True)
            with suppress(OSError):  # another process removes them too
                _remove_old(os.path.dirname(self._folder))

    def _keep_all(self, paths: tuple[str, ...]) -> dict[str, tuple[Stamp, str]]:
        if self._changes is None:
            self._changes = self._load()
        until_s, kept = time.monotonic() + KEEP_LIMIT_S, dict[str, tuple[Stamp, str]]()
        found = {path: stamp for path in paths if (stamp := stamp_of(path)) is not None}
        for path, stamp in sorted(found.items(), key=lambda item: item[1][1]):
            room = self._size + stamp[1] <= AHEAD_LIMIT_BYTES and time.monotonic() < until_s
            version = _look(path, FILE_LIMIT_BYTES) if room else FileVersion(stamp[0])
            kept[path] = (stamp, version.key)
            if version.data is not None:
                try:
                    self._make()
                    self._keep(version.key.partition(" ")[2], version.data)
                except OSError:
                    kept[path] = (stamp, OTHER)
        return kept

    def _load(self) -> list[FileChange]:
        if self._folder is None:
            return []
        lines = (read_path(os.path.join(self._folder, JOURNAL), HISTORY_LIMIT_BYTES) or b"").splitlines()
        found: list[FileChange] = []
        with suppress(OSError):
            self._size = _size(self._folder)
        for line in lines:
            with suppress(ValueError, TypeError):  # the last line of a process that was killed
                found.append(FileChange(**cast("dict[str, Any]", json.loads(line))))
        return found

    def _keep(self, name: str, data: bytes) -> None:
        """Keep a content once, or add to the journal, as far as there is room."""
        path = os.path.join(self._folder or "", name)
        there = name in self._blobs if self._folder is None else name != JOURNAL and os.path.exists(path)
        if there or self._size + len(data) > HISTORY_LIMIT_BYTES:
            return
        self._size += len(data)
        if self._folder is None:
            self._blobs[name] = data
            return
        draft = path if name == JOURNAL else f"{path}.{secrets.token_hex(4)}"
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_APPEND | NO_LINK, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
        os.rename(draft, path)


def _size(folder: str) -> int:
    with os.scandir(folder) as entries:
        return sum(entry.stat(follow_symlinks=False).st_size for entry in entries)


def _remove_old(parent: str) -> None:
    """Remove the histories that are too old, and the oldest ones where all together are too large."""
    since_s, room = time.time() - KEPT_DAYS * 86_400, ALL_LIMIT_BYTES
    with os.scandir(parent) as entries:
        folders = [entry.path for entry in entries if _ID.fullmatch(entry.name) and entry.is_dir(follow_symlinks=False)]
    for changed_s, folder in sorted(((_changed_s(folder), folder) for folder in folders), reverse=True):
        room -= _size(folder)
        if changed_s < since_s or room < 0:
            shutil.rmtree(folder, ignore_errors=True)


def _changed_s(folder: str) -> float:
    journal = os.path.join(folder, JOURNAL)
    return os.stat(journal if os.path.lexists(journal) else folder, follow_symlinks=False).st_mtime


def _look(path: str, limit_bytes: int) -> FileVersion:
    folder, name = os.path.split(path)
    try:
        with opened_folder(os.path.realpath(folder)) as inside:
            found = os.stat(name, dir_fd=inside, follow_symlinks=False)
            if stat.S_ISLNK(found.st_mode):
                return FileVersion(stat.S_IFLNK, os.fsencode(os.readlink(name, dir_fd=inside)))
            if not stat.S_ISREG(found.st_mode) or found.st_size > limit_bytes:
                return FileVersion(stat.S_IFMT(found.st_mode))
            data = read_file(inside, name, limit_bytes)
            return FileVersion(found.st_mode, data if len(data) <= limit_bytes else None)
    except (FileNotFoundError, NotADirectoryError):
        return FileVersion()
    except OSError:
        return FileVersion(stat.S_IFREG)


def _put(path: str, version: FileVersion, draft: Draft) -> None:
    folder, name = os.path.split(path)
    with in_words(path, "restored"), opened_folder(folder, make=version.key != ABSENT) as inside:
        if version.key == FOLDER:
            with suppress(FileExistsError):
                os.mkdir(name, dir_fd=inside)
            return
        if version.data is None:
            is_folder = stat.S_ISDIR(os.stat(name, dir_fd=inside, follow_symlinks=False).st_mode)
            (os.rmdir if is_folder else os.unlink)(name, dir_fd=inside)
            return
        with draft(folder) as made:
            try:
                if stat.S_ISLNK(version.mode):
                    os.symlink(os.fsdecode(version.data), made, dir_fd=inside)
                else:
                    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | NO_LINK
                    with os.fdopen(os.open(made, flags, 0o600, dir_fd=inside), "wb") as file:
                        file.write(version.data)
                        os.fchmod(file.fileno(), stat.S_IMODE(version.mode) & 0o777)
                        file.flush()
                        os.fsync(file.fileno())
                os.rename(made, name, src_dir_fd=inside, dst_dir_fd=inside)
            finally:
                removed(made, inside)
