"""The end of a restore that was cut off: whoever opens the state next does it, or throws the rest away."""

from __future__ import annotations

import shutil
from contextlib import suppress
from pathlib import Path
from typing import Final

STAGING: Final = ".restoring"
"""The folder beside the database in which a restore is made ready."""

ID_FILE: Final = "id"
"""In that folder: the `application_id` that the database has once it is restored."""

KEPT_FOLDER: Final = "files"
_TURNS: Final = ("turns.sqlite", "turns.sqlite-wal", "turns.sqlite-shm", "turns.sqlite-journal")
"""The open turns of the state before: their logs are gone, and going on with them could repeat an effect."""


def settle(folder: Path, application_id: int) -> None:
    """End a restore by the `application_id` that the database has: it was restored, or it was not.

    Raises `OSError`; a later call goes on.
    """
    staging, number = folder / STAGING, ""
    with suppress(FileNotFoundError):
        number = (staging / ID_FILE).read_text("ascii")
    if number == str(application_id):
        for name in _TURNS:
            (folder / name).unlink(missing_ok=True)
        if (staging / KEPT_FOLDER).exists():
            if (folder / KEPT_FOLDER).exists():
                (folder / KEPT_FOLDER).rename(staging / "before")
            (staging / KEPT_FOLDER).rename(folder / KEPT_FOLDER)
    shutil.rmtree(staging)
