"""The content of a path on this machine's disk as one value: read, written beside the path, and put in its place."""

from __future__ import annotations

import os
import stat
from contextlib import suppress

from punie.adapters.local.files.writing import Draft, in_words, removed
from punie.mechanics.files import NO_LINK, opened_folder, read_file
from punie.ports.history import ABSENT, FOLDER, FileVersion

DONE = "restored"


def look(path: str, limit_bytes: int) -> FileVersion:
    """The version at an absolute path; a link at its end is not followed. Never raises."""
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


def put(path: str, version: FileVersion, draft: Draft) -> None:
    """Make the path hold that version, or leave it as it is; `absent` deletes it. Raises `ToolFailedError`."""
    folder, name = os.path.split(path)
    with in_words(path, DONE), opened_folder(folder, make=version.key != ABSENT) as inside:
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
                write_draft(inside, made, version)
                os.rename(made, name, src_dir_fd=inside, dst_dir_fd=inside)
            finally:
                removed(made, inside)


def write_draft(folder: int, name: str, version: FileVersion) -> None:
    """Make a new file or link of an opened folder that holds the version, on the disk. Raises `OSError`."""
    assert version.data is not None  # noqa: S101 - callers know
    if stat.S_ISLNK(version.mode):
        os.symlink(os.fsdecode(version.data), name, dir_fd=folder)
        return
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | NO_LINK
    with os.fdopen(os.open(name, flags, 0o600, dir_fd=folder), "wb") as file:
        file.write(version.data)
        os.fchmod(file.fileno(), stat.S_IMODE(version.mode) & 0o777)
        file.flush()
        os.fsync(file.fileno())


def move_draft(draft: str, path: str) -> None:
    """Put a draft, given by its absolute path, in the place of a file. Raises `ToolFailedError`."""
    there, name = os.path.split(draft)
    folder, target = os.path.split(path)
    with in_words(path, DONE), opened_folder(there) as beside, opened_folder(folder, make=True) as inside:
        os.rename(name, target, src_dir_fd=beside, dst_dir_fd=inside)
