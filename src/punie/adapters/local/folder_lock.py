"""One at a time in a folder: what another process of ours is changing there is waited for."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Generator

STEP_S = 0.02


class FolderBusyError(OSError):
    """Somebody else held the folder for as long as we may wait."""


@contextlib.contextmanager
def locked_folder(folder: str, limit_s: float) -> Generator[None]:
    """Hold the folder, which is there, until the block is left; the kernel lets go of it however the process ends.

    Blocks for `limit_s` at most. A system without such locks goes without. Raises `FolderBusyError`, and `OSError`
    where the folder cannot be opened.
    """
    try:
        import fcntl
    except ImportError:  # Windows
        yield
        return
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        until = time.monotonic() + limit_s
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > until:
                    raise FolderBusyError(0, "another program is changing files there; try again") from None
                time.sleep(STEP_S)
            except OSError:
                break  # a file system without locks
        yield
    finally:
        os.close(descriptor)
