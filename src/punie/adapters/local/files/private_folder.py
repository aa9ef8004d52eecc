"""A folder of one session in the machine's folder for temporary files, and those that killed processes left there."""

from __future__ import annotations

import os
import re
import shutil
import stat
import threading
import time

from punie.adapters.local.files.folders import LIST_FLAGS

LOCK = "lock"
"""The file that the living owner of a folder holds locked; the kernel lets go of it however the owner ends."""

SWEEP_LIMIT_S = 0.25
"""How long the first use of a folder may look for abandoned ones; what is left then waits for the next session."""

_NAME = re.compile(r"punie-[0-9a-f]{32}")
_LOCK_FLAGS = os.O_RDWR | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)


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
        """Make it where it is not there, and remove what killed processes left beside it. Raises `OSError`."""
        with self._making:
            if self._removed:
                raise FileNotFoundError(f"{self.path} went with its session")
            if os.path.isdir(self.path):
                return
            self._make(f"{self.path}.new")
            remove_abandoned(os.path.dirname(self.path))

    def _make(self, building: str) -> None:
        """By its own name it is seen only once it is locked."""
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
        """Remove it with all that is in it, for good; never raises."""
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

    One is ours and abandoned where its name is one of ours, it is a folder and no link, it belongs to this user alone,
    it holds files only, and among them a lock that no process holds. Anything else is left as it is.
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
    """The folder's new lock file, held; None, and no file, where this machine has no such locks."""
    path = os.path.join(folder, LOCK)
    lock = _taken(os.open(path, _LOCK_FLAGS | os.O_CREAT | os.O_EXCL, 0o600))
    if lock is None:
        os.unlink(path)
    return lock


def _taken(descriptor: int) -> int | None:
    """The descriptor, if the lock on its file is ours now; it is closed where not."""
    try:
        import fcntl

        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (ImportError, OSError):
        os.close(descriptor)
        return None
    return descriptor
