"""Atomic writes: a file is replaced as a whole, or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


@contextmanager
def draft_of(target: Path, *, mode: int | None = None, lasting: bool = False) -> Generator[BinaryIO]:
    """A file beside `target` to write to, which replaces it when the block ends without an exception.

    Only the user can read it, or those whom `mode` permits; with `lasting` it is synced to the disk before. Raises
    `OSError`.
    """
    descriptor, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    scratch = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
            if lasting:
                file.flush()
                os.fsync(file.fileno())
        if mode is not None:
            scratch.chmod(mode)
        scratch.replace(target)
    except BaseException:
        scratch.unlink(missing_ok=True)
        raise


def write_at_once(target: Path, text: str, mode: int) -> None:
    """Replace the file by this text, with that mode and synced to the disk. Raises `OSError`."""
    with draft_of(target, mode=mode, lasting=True) as file:
        file.write(text.encode("utf-8"))
