"""The text files of this machine, inside a session's directories."""

from __future__ import annotations

import difflib
import errno
import io
import itertools
import os
import secrets
import stat
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import partial
from typing import TypeAlias

import anyio
import anyio.to_thread

from punie.domain.errors import OutsideWorkspaceError, ToolFailedError, UnsupportedHereError
from punie.domain.values.file_kind import HEAD_BYTES, kind_of, looks_binary_bytes
from punie.mechanics.files import (
    LIST_FLAGS,
    MissingFolderError,
    NotAFileError,
    existing_file,
    names_in,
    opened,
    opened_file,
    opened_folder,
    read_at_most,
)
from punie.ports.workspace import PathGuard, Workspace

READ_LIMIT_BYTES = 20_000_000
"""Larger files are refused: no model reads them whole, and a command can pick out a part."""

NEAR_NAMES = 3
_LISTED_FOR_NEAR_NAMES = 2_000
Draft: TypeAlias = Callable[[str], AbstractContextManager[str]]
_THREADS = 8


class LocalWorkspace(Workspace):
    """UTF-8 files on this machine's disk; lives as long as the session. Supported on Linux and macOS.

    The guard resolves a path at every use, and the file is then opened folder by folder without following links, so
    that a link put in place in between is refused. Line ends, a byte order mark and every character stay as they are.
    """

    def __init__(self, guard: PathGuard, draft: Draft | None = None) -> None:
        """`guard` knows the session's directories; nothing is touched yet.

        `draft` is a block around a write, with the name of the new file until it takes its place in a folder.
        """
        self._guard = guard
        self._draft = draft or _draft
        self._threads = anyio.CapacityLimiter(_THREADS)

    async def read_text(self, path: str, *, line_1based: int | None = None, limit_lines: int | None = None) -> str:
        """The text, whole or in part; lines end at line feeds and keep them.

        Raises `OutsideWorkspaceError`, and `ToolFailedError` for a file that is missing, no regular file, binary, not
        UTF-8 or larger than `READ_LIMIT_BYTES`.
        """
        _require_support()
        _require_lines(line_1based, limit_lines)
        target = await self._inside(path)
        # Abandoned when cancelled: a read has no effect, and a hung network disk must not hold up the cancel.
        work = partial(_read, target, line_1based, limit_lines)
        return await anyio.to_thread.run_sync(work, abandon_on_cancel=True, limiter=self._threads)

    async def write_text(self, path: str, content: str) -> None:
        """Replace the file by one that holds exactly `content`; a cancel comes before it or after it, never in between.

        The new file is renamed into place, with the permissions of the old one. So other hard links keep the old text,
        and a file without write permission is refused although a rename could replace it. Raises
        `OutsideWorkspaceError` and `ToolFailedError`.
        """
        _require_support()
        try:
            data = content.encode("utf-8")
        except UnicodeEncodeError as error:
            raise ToolFailedError(
                f"{path} was not written: character {error.start + 1} of the content is half of a surrogate pair, "
                "which UTF-8 cannot hold. Send whole characters."
            ) from None
        target = await self._inside(path)
        await anyio.to_thread.run_sync(_write, target, data, self._draft, limiter=self._threads)

    async def _inside(self, path: str) -> str:
        where = await self._guard.locate(path)
        if not where.inside:
            raise OutsideWorkspaceError(where.path)
        return where.path


def _require_support() -> None:
    if os.name != "posix":
        raise UnsupportedHereError(
            "Punie does not serve files itself on this operating system yet. Use an IDE that offers its files to the "
            "agent (ACP fs capabilities), or run Punie on Linux or macOS."
        )


def _require_lines(line_1based: int | None, limit_lines: int | None) -> None:
    if line_1based is not None and line_1based < 1:
        raise ToolFailedError(f"Line {line_1based} does not exist: lines are counted from 1.")
    if limit_lines is not None and limit_lines < 0:
        raise ToolFailedError(f"A limit of {limit_lines} lines makes no sense: use 0 or more, or leave it out.")


# --- reading -----------------------------------------------------------------------------------


def _read(path: str, line_1based: int | None, limit_lines: int | None) -> str:
    with _in_words(path, "read"):
        data = _read_bytes(path)
    if b"\0" in data:
        raise ToolFailedError(
            f"{path} is not a text file in UTF-8: it holds NUL bytes and looks like {kind_of(data[:HEAD_BYTES])}, "
            f"{len(data)} bytes. Use run_command with a program that knows its format."
        )
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ToolFailedError(
            f"{path} is not in UTF-8: byte {error.start + 1} of {len(data)} does not decode; "
            f"it looks like {_undecodable_kind(data)}. "
            "Use run_command to convert it (iconv), or to look at it (file, xxd)."
        ) from None
    return text if line_1based is None and limit_lines is None else _slice(path, text, line_1based or 1, limit_lines)


def _undecodable_kind(data: bytes) -> str:
    kind = kind_of(data[:HEAD_BYTES])
    return "text in another encoding" if kind == "binary data" and not looks_binary_bytes(data) else kind


def _read_bytes(path: str) -> bytes:
    folder, name = os.path.split(path)
    with opened_folder(folder) as inside:
        try:
            with opened_file(inside, name) as descriptor:
                data, size = read_at_most(descriptor, READ_LIMIT_BYTES), os.fstat(descriptor).st_size
        except FileNotFoundError:
            raise ToolFailedError(_missing(path, folder, name, names_in(inside, _LISTED_FOR_NEAR_NAMES))) from None
    if len(data) > READ_LIMIT_BYTES:
        raise ToolFailedError(
            f"{path} is too large to read: {max(size, len(data))} bytes, the limit is {READ_LIMIT_BYTES}. "
            "Use run_command to pick out a part (sed -n 1,100p), or search_text to find lines."
        )
    return data


def _slice(path: str, text: str, line_1based: int, limit_lines: int | None) -> str:
    start = line_1based - 1
    stop = None if limit_lines is None else start + limit_lines
    part = "".join(itertools.islice(io.StringIO(text, newline="\n"), start, stop))
    if not part and start and limit_lines != 0:
        count = text.count("\n") + (not text.endswith("\n") and bool(text))
        if start > count:
            raise ToolFailedError(f"{path} has {count} lines; there is no line {line_1based}. Ask for an earlier one.")
    return part


def _missing(path: str, folder: str, name: str, names: list[str]) -> str:
    by_case = {known.lower(): known for known in names}
    near = [by_case[low] for low in difflib.get_close_matches(name.lower(), by_case, NEAR_NAMES)]
    hint = f" {folder} holds {', '.join(near)}." if near else ""
    return f"{path} does not exist.{hint} Use list_files to see what is there."


# --- writing -----------------------------------------------------------------------------------


@contextmanager
def _draft(_folder: str) -> Generator[str]:
    yield f".punie-{secrets.token_hex(8)}.tmp"


def _write(path: str, data: bytes, draft: Draft) -> None:
    folder, name = os.path.split(path)
    if not name:
        raise ToolFailedError(f"{path} is a folder, so it was not written. Name a file in it.")
    with _in_words(path, "written"), opened_folder(folder, make=True) as inside:
        old = existing_file(inside, name)
        if old is not None:
            _require_writable(path, name, inside, old)
        with draft(folder) as new:
            _replace(inside, name, new, data, old)


def _require_writable(path: str, name: str, folder: int, old: os.stat_result) -> None:
    # The mode is checked as well as access(): for root everything is writable, and a rename checks neither.
    if not old.st_mode & 0o222 or not os.access(name, os.W_OK, dir_fd=folder, effective_ids=True):
        raise ToolFailedError(
            f"{path} is read-only (mode {stat.S_IMODE(old.st_mode):04o}), so it was not written. "
            "If it is to change, make it writable first (chmod u+w)."
        )


def _replace(folder: int, name: str, draft: str, data: bytes, old: os.stat_result | None) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    # A new file honours the umask; a file to be kept private is never readable in between.
    descriptor = os.open(draft, flags, 0o666 if old is None else 0o600, dir_fd=folder)
    try:
        try:
            if old is not None:
                _keep_owner_and_mode(descriptor, old)
            _write_all(descriptor, data)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        os.rename(draft, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        os.unlink(draft, dir_fd=folder)
        raise
    _sync_folder(folder)


def _keep_owner_and_mode(descriptor: int, old: os.stat_result) -> None:
    new = os.fstat(descriptor)
    if (new.st_uid, new.st_gid) != (old.st_uid, old.st_gid):
        try:
            os.fchown(descriptor, old.st_uid, old.st_gid)
        except PermissionError:  # another user's file in a shared folder becomes ours, as with any editor
            os.fchmod(descriptor, stat.S_IMODE(old.st_mode) & 0o777)
            return
    os.fchmod(descriptor, stat.S_IMODE(old.st_mode))


def _write_all(descriptor: int, data: bytes) -> None:
    left = memoryview(data)
    while left:
        left = left[os.write(descriptor, left) :]


def _sync_folder(folder: int) -> None:
    # A folder that cannot be listed cannot be synced, nor can some network file systems; the rename took place.
    with suppress(OSError), opened(".", LIST_FLAGS, folder) as listed:
        os.fsync(listed)


# --- errors ------------------------------------------------------------------------------------

_REASONS = {
    errno.ENOSPC: "the disk is full. Nothing was changed; free some space and try again",
    errno.EDQUOT: "the disk quota is used up. Nothing was changed; free some space and try again",
    errno.EROFS: "the file system is read-only. Nothing was changed; write somewhere else",
    errno.EFBIG: "the file would be larger than this system allows. Nothing was changed",
    errno.EACCES: "the operating system denies access. Check the permissions of the file and its folder",
    errno.EPERM: "the operating system does not permit it. Check the permissions of the file and its folder",
    errno.ENAMETOOLONG: "a name on the way is too long. Use a shorter one",
    errno.ELOOP: "a link was put on the way just now. Look at the folder again before trying once more",
    errno.EMFILE: "too many files are open. Release what is running and try again",
}


@contextmanager
def _in_words(path: str, done: str) -> Generator[None]:
    try:
        yield
    except NotAFileError as error:
        step = "list_files shows what is in it" if error.what == "a folder" else "Only regular files are touched"
        raise ToolFailedError(f"{path} is {error.what}, so it was not {done}. {step}.") from None
    except MissingFolderError as error:
        message = f"{path} does not exist: there is no folder {error.folder}. Use list_files to see what is there."
        raise ToolFailedError(message) from None
    except NotADirectoryError:
        raise ToolFailedError(f"{path} was not {done}: a part of its path is a file or a link, not a folder.") from None
    except OSError as error:
        reason = _REASONS.get(error.errno or 0, f"{error.strerror or error}. Try again, or look at the folder first")
        raise ToolFailedError(f"{path} was not {done}: {reason}.") from None
