"""A project on the disk whose links lead out of it: the file `link.py`, and the folder `away` with `there.sh`."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path


def linked_project(folder: Path, files: Iterable[str]) -> Path:
    """Make the project in a new folder below `folder`, with these files; each holds its own name."""
    made = folder / "project"
    for name in files:
        (made / name).parent.mkdir(parents=True, exist_ok=True)
        (made / name).write_text(name, "utf-8")
    outside = folder / "outside"
    outside.mkdir()
    (outside / "there.sh").write_text("there", "utf-8")
    (made / "link.py").symlink_to(outside / "there.sh")
    (made / "away").symlink_to(outside)
    return made
