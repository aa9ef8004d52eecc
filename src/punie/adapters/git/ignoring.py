"""Untracked files: what is in the working tree, not in the index, and not ignored."""

# ruff: noqa: PTH118, PTH120 - paths as git sees them: bytes, undecodable names, folder descriptors

from __future__ import annotations

import os
import re
from collections.abc import Iterator

from attrs import define, field
from dulwich.ignore import IgnoreFilter

from punie.adapters.git.checkout import Checkout

ENTRY_LIMIT = 200_000
_RULES_LIMIT_BYTES = 500_000
_DEPTH_LIMIT = 100
_READ_FLAGS = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)

Stack = tuple[tuple[bytes, IgnoreFilter], ...]


@define
class UntrackedFiles:
    """Walks the working tree of one checkout, reading .gitignore files and the repository's exclude file on the way.

    Repositories inside the repository are passed over, links are never followed.
    """

    checkout: Checkout
    tracked: frozenset[bytes]
    left: int = ENTRY_LIMIT
    _tracked_folders: frozenset[bytes] = field(init=False)

    def __attrs_post_init__(self) -> None:
        folders: set[bytes] = set()
        for path in self.tracked:
            folder = os.path.dirname(path)
            while folder and folder not in folders:
                folders.add(folder)
                folder = os.path.dirname(folder)
        self._tracked_folders = frozenset(folders)

    def all(self) -> Iterator[bytes]:
        """Every untracked file inside the roots."""
        yield from self._below(b"", self._first_rules(), 0)

    def shown(self) -> Iterator[bytes]:
        """As `all`, but a folder that holds no tracked file is one entry that ends with a slash."""
        yield from self._below(b"", self._first_rules(), 0, collapse=True)

    def _first_rules(self) -> Stack:
        exclude = os.path.join(self.checkout.repo.commondir(), "info", "exclude")
        return _with_rules(os.fsencode(exclude), b"", ())

    def _below(self, folder: bytes, stack: Stack, depth: int, *, collapse: bool = False) -> Iterator[bytes]:
        full = os.path.join(os.fsencode(self.checkout.top), folder)
        stack = _with_rules(os.path.join(full, b".gitignore"), folder, stack)
        for name, is_folder, is_file in _entries(full):
            self.left -= 1
            if self.left < 0:
                return
            path = folder + b"/" + name if folder else name
            tracked = path in self.tracked and not is_folder  # a folder may have taken a tracked file's place
            if tracked or name == b".git" or _ignored(stack, path, is_folder=is_folder):
                continue
            if is_folder:
                yield from self._folder(path, stack, depth + 1, collapse=collapse)
            elif is_file and self.checkout.sees(path):
                yield path

    def _folder(self, path: bytes, stack: Stack, depth: int, *, collapse: bool) -> Iterator[bytes]:
        nested = os.path.lexists(os.path.join(os.fsencode(self.checkout.top), path, b".git"))
        if nested or depth > _DEPTH_LIMIT or not self._may_hold_visible(path):
            return
        whole = collapse and path not in self._tracked_folders and self.checkout.sees(path)
        inside = self._below(path, stack, depth, collapse=collapse and not whole)
        if not whole:
            yield from inside
        elif next(inside, None) is not None:
            yield path + b"/"

    def _may_hold_visible(self, path: bytes) -> bool:
        full = self.checkout.full(path)
        return self.checkout.sees(path) or any(root.startswith(f"{full}/") for root in self.checkout.roots)


def _entries(folder: bytes) -> list[tuple[bytes, bool, bool]]:
    found: list[tuple[bytes, bool, bool]] = []
    try:
        with os.scandir(folder) as listed:
            for entry in listed:
                is_folder = entry.is_dir(follow_symlinks=False)
                found.append((entry.name, is_folder, entry.is_symlink() or entry.is_file(follow_symlinks=False)))
    except OSError:  # closed to us
        return []
    return sorted(found)


def _ignored(stack: Stack, path: bytes, *, is_folder: bool) -> bool:
    for base, rules in reversed(stack):  # the nearest file that says anything has the last word
        below = path[len(base) + 1 :] if base else path
        verdict = rules.is_ignored((below + b"/" if is_folder else below).decode("utf-8", "surrogateescape"))
        if verdict is not None:
            return verdict
    return False


def _with_rules(file: bytes, base: bytes, stack: Stack) -> Stack:
    try:
        descriptor = os.open(file, _READ_FLAGS)
    except OSError:
        return stack
    try:
        lines = os.read(descriptor, _RULES_LIMIT_BYTES).splitlines()
    except OSError:
        return stack
    finally:
        os.close(descriptor)
    patterns = [line for line in map(_trimmed, lines) if line and not line.startswith(b"#") and not _is_costly(line)]
    return (*stack, (base, IgnoreFilter(patterns))) if patterns else stack


def _trimmed(line: bytes) -> bytes:
    bare = line.rstrip(b" \t\r")
    return bare + b" " if bare.endswith(b"\\") and bare != line else bare


def _is_costly(pattern: bytes) -> bool:
    """So many stars that a backtracking matcher could take seconds for one long name: passed over."""
    parts = pattern.split(b"/")
    return parts.count(b"**") > 3 or any(len(re.findall(rb"\*+", part)) > 4 for part in parts)
