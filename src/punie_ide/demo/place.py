"""Where the demo works: a temporary copy with a small package planted, or the project itself."""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

from attrs import frozen

import punie

PLANTED = "demo_shop"
NOTE = "punie-demo-note.md"

SKIPPED = frozenset(
    {".git", ".hg", ".svn", ".venv", "venv", "node_modules", "__pycache__", "build", "dist", ".tox", ".nox", "target"}
)
"""Folders that are no sources; those that end in `_cache` are left out as well."""

FILE_LIMIT = 5_000
SIZE_LIMIT_BYTES = 1_000_000
TOTAL_LIMIT_BYTES = 50_000_000


class NoSuchProjectError(ValueError):
    """The project cannot be worked on; the sentence says why."""


@frozen
class Place:
    """The folder that the demo's IDE has open: absolute, links followed. `note` is a file name that is free there."""

    root: Path
    about: str
    in_place: bool
    note: str = NOTE

    @property
    def target(self) -> str:
        """What to ask a model about."""
        return "this project" if self.in_place else PLANTED

    def snapshot(self) -> dict[str, str]:
        """Digest by relative path of every file that the demo looks after, read from the disk now."""
        return {str(file.relative_to(self.root)): _digest(file) for file in _files(self.root)}


def default_project() -> Path | None:
    """The repository that this package is run from, or None where it is installed elsewhere."""
    root = Path(punie.__file__).resolve().parents[2]
    is_checkout = (root / "pyproject.toml").is_file() and (root / "src" / "punie").is_dir()
    return root if is_checkout else None


def prepare(project: str | None, folder: Path, *, in_place: bool) -> Place:
    """The place to work in; copies go below the empty `folder`. Raises `NoSuchProjectError`."""
    source = default_project() if project is None else Path(project).expanduser().resolve()
    if source is not None and not source.is_dir():
        raise NoSuchProjectError(f"{project} is no folder. Give --project the folder of a project.")
    if in_place:
        if source is None:
            raise NoSuchProjectError("There is no project here to work on in place. Give one with --project DIR.")
        return Place(
            source, f"{source}, in place: the demo writes one new file and touches nothing else.", True, _free(source)
        )
    root = folder.resolve() / "project"
    root.mkdir()
    copied = 0 if source is None else _copy(source, root)
    _plant(root / PLANTED)
    whole = "a small project of the demo's own" if source is None else f"a temporary copy of {source} ({copied} files)"
    return Place(root, f"{whole}, with the package {PLANTED} planted for the demo. Your files stay as they are.", False)


def _free(root: Path) -> str:
    names = (NOTE, *(f"punie-demo-note-{number}.md" for number in range(2, 1000)))
    return next(name for name in names if not (root / name).exists())


def _copy(source: Path, target: Path) -> int:
    copied = total_bytes = 0
    for file in _files(source):
        total_bytes += file.stat().st_size
        if total_bytes > TOTAL_LIMIT_BYTES:
            break
        goal = target / file.relative_to(source)
        goal.parent.mkdir(parents=True, exist_ok=True)
        try:
            shutil.copyfile(file, goal)
        except OSError:
            continue  # not ours to read: the demo does without
        copied += 1
    return copied


def _plant(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)  # in the copy: a project that has such a package keeps its own
    folder.mkdir()
    for planted in files("punie_ide.demo").joinpath("planted").iterdir():
        if planted.name.endswith(".txt"):
            text = planted.read_text(encoding="utf-8")
            (folder / planted.name.removesuffix(".txt")).write_text(text, encoding="utf-8")


def _files(root: Path) -> Iterator[Path]:
    """Small regular files below the folder, in order, no links, at most `FILE_LIMIT`."""
    left = FILE_LIMIT
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if name not in SKIPPED and not name.endswith("_cache"))
        for file in (Path(folder, name) for name in sorted(names)):
            if _is_small_file(file):
                yield file
                left -= 1
            if left == 0:
                return


def _is_small_file(file: Path) -> bool:
    try:
        known = file.lstat()
    except OSError:
        return False
    return stat.S_ISREG(known.st_mode) and known.st_size <= SIZE_LIMIT_BYTES


def _digest(file: Path) -> str:
    try:
        return hashlib.sha256(file.read_bytes()).hexdigest()
    except OSError:
        return "unreadable"
