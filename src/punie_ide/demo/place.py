"""The set-up of the demo: the folder it works in, and the script or prompts that it plays."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import stat
import sys
from collections.abc import Iterator, Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any, cast

from attrs import frozen

import punie

PLANTED = "demo_shop"
NOTE = "punie-demo-note.md"

SKIPPED = frozenset(
    {".git", ".hg", ".svn", ".venv", "venv", "node_modules", "__pycache__", "build", "dist", ".tox", ".nox", "target"}
)
"""Folders without sources; those that end in `_cache` are left out as well."""

FILE_LIMIT = 5_000
SIZE_LIMIT_BYTES = 1_000_000
TOTAL_LIMIT_BYTES = 50_000_000


class NoSuchProjectError(ValueError):
    """The project cannot be worked on; the message says why."""


@frozen
class Place:
    """The folder that the demo's IDE has open, absolute and with links followed; `note` is a free file name there."""

    root: Path
    about: str
    in_place: bool
    note: str = NOTE

    @property
    def target(self) -> str:
        """The subject of the prompts for a model."""
        return "this project" if self.in_place else PLANTED

    def snapshot(self) -> dict[str, str]:
        """The digest of every watched file by its relative path, read from the disk now."""
        return {str(file.relative_to(self.root)): _digest(file) for file in _files(self.root)}


def default_project() -> Path | None:
    """The repository that this package is run from, or None where it is installed elsewhere."""
    root = Path(punie.__file__).resolve().parents[2]
    is_checkout = (root / "pyproject.toml").is_file() and (root / "src" / "punie").is_dir()
    return root if is_checkout else None


def prepare(project: str | None, folder: Path, *, in_place: bool) -> Place:
    """The place to work in; copies go below the empty `folder`. Raises `NoSuchProjectError`."""
    source = default_project() if project is None else Path(os.path.expanduser(project)).resolve()  # noqa: PTH111 - never raises
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
            continue  # a file that cannot be read is left out of the copy
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


MODEL_PROMPTS = (
    "Use the IDE's tools to find out what is wrong in {target}, and mend one thing.",
    "Now run the tests, or any check that proves it, and tell me the outcome in two sentences.",
)
DIRECT_PROMPTS = ('/call find_problems {"path": "."}', "/write {note}\nWritten by the demo.\n")


@frozen
class Play:
    """The prompts of the conversation, and the model that answers."""

    prompts: tuple[str, ...]
    model: str


def scripted(folder: Path, *, in_place: bool, note: str) -> Play:
    """The packaged script as a file below `folder`."""
    name = "script_in_place.json" if in_place else "script.json"
    packaged = json.loads(files("punie_ide.demo").joinpath(name).read_text(encoding="utf-8"))
    filled = cast("dict[str, Any]", _fill(packaged, {"{python}": sys.executable, "{note}": note}))
    target = folder / "script.json"
    target.write_text(json.dumps(filled), encoding="utf-8")
    return Play(tuple(filled["prompts"]), f"script:{target}")


def modelled(model: str, *, target: str, note: str) -> Play:
    """Prompts for a model of the user, or commands without one."""
    prompts = DIRECT_PROMPTS if model == "direct" else MODEL_PROMPTS
    return Play(tuple(prompt.replace("{target}", target).replace("{note}", note) for prompt in prompts), model)


def _fill(value: object, words: Mapping[str, str]) -> object:
    """The tree with the placeholders in its texts replaced."""
    if isinstance(value, dict):
        return {key: _fill(item, words) for key, item in cast("dict[str, object]", value).items()}
    if isinstance(value, list):
        return [_fill(item, words) for item in cast("list[object]", value)]
    if isinstance(value, str):
        for placeholder, word in words.items():
            value = value.replace(placeholder, word)
    return value
