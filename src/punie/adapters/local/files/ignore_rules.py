"""Entries that git ignores below a folder, by every .gitignore on the way and the repository's exclude file."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, TypeAlias

from punie.mechanics.files import read_path

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

    Stack: TypeAlias = tuple[tuple[str, GitIgnoreSpec], ...]

_RULES_LIMIT_BYTES = 500_000
_STARS_IN_NAME = 4
_DEEP_STARS = 3


class IgnoreRules:
    """The ignore rules below one folder, each file of rules read once; lives as long as one listing or search.

    `top` is the top folder of the repository around `start`, or the session's root where there is no repository. Below
    a start that is ignored itself, only the rules inside it count. The user's own excludes file (`core.excludesFile`)
    is not read.
    """

    def __init__(self, start: str, root: str, hidden: Collection[str] = ()) -> None:
        """`hidden` are absolute paths that are left out as well."""
        self._start = start
        self._hidden = hidden
        self.top, self.in_repository = _top_of(start, root)
        self._stacks: dict[str, Stack] = {}
        self._folders: dict[str, bool] = {start: False}
        self.start_is_ignored = False
        stack = _exclude_file(self.top)
        folder = self.top
        for part in filter(None, start[len(self.top) :].split("/")):
            stack = _with_rules_of(folder, stack)
            if _decide(stack, f"{folder}/{part}", is_folder=True):
                self.start_is_ignored = True
                stack = ()
            folder = f"{folder}/{part}"
        self._stacks[start] = _with_rules_of(start, stack)

    def ignores(self, folder: str, name: str, *, is_folder: bool) -> bool:
        """Whether git ignores the entry `name` of `folder`, a folder that is not ignored."""
        path = f"{folder}/{name}"
        return name == ".git" or path in self._hidden or _decide(self._stack_in(folder), path, is_folder=is_folder)

    def ignores_below(self, path: str) -> bool:
        """As `ignores`, for a file anywhere below the start, whose folders may be ignored."""
        folder, name = os.path.split(path)
        return self._folder_is_ignored(folder) or self.ignores(folder, name, is_folder=False)

    def _folder_is_ignored(self, folder: str) -> bool:
        known = self._folders.get(folder)
        if known is None:
            parent, name = os.path.split(folder)
            if parent == folder:  # not below the start at all
                return True
            known = self._folder_is_ignored(parent) or self.ignores(parent, name, is_folder=True)
            self._folders[folder] = known
        return known

    def _stack_in(self, folder: str) -> Stack:
        stack = self._stacks.get(folder)
        if stack is None:
            # A repository inside the repository starts anew: git's rules end at its border.
            nested = os.path.lexists(f"{folder}/.git")
            above = _exclude_file(folder) if nested else self._stack_in(os.path.dirname(folder))
            stack = self._stacks[folder] = _with_rules_of(folder, above)
        return stack


def matcher(lines: Iterable[str]) -> GitIgnoreSpec:
    """A matcher for lines as in a .gitignore file; lines that git cannot use are left out."""
    from pathspec import GitIgnoreSpec  # 21 ms of CPU: loaded with the first listing

    usable: list[str] = []
    for line in lines:
        if line.strip() and not line.startswith("#") and not is_costly(line):
            try:
                GitIgnoreSpec.from_lines([line])
            except (ValueError, re.error):
                continue
            usable.append(line)
    return GitIgnoreSpec.from_lines(usable)


def is_costly(pattern: str) -> bool:
    """Whether a pattern has so many stars that a backtracking matcher could take seconds for one long name."""
    parts = pattern.split("/")
    if sum(part == "**" for part in parts) > _DEEP_STARS:
        return True
    return any(len(re.findall(r"\*+", part)) > _STARS_IN_NAME for part in parts)


def _decide(stack: Stack, path: str, *, is_folder: bool) -> bool:
    for base, spec in reversed(stack):  # the nearest file with a rule for the path decides
        below = path[len(base.rstrip("/")) + 1 :] + ("/" if is_folder else "")
        verdict = spec.check_file(below).include
        if verdict is not None:
            return verdict
    return False


def _with_rules_of(folder: str, stack: Stack) -> Stack:
    lines = _lines(f"{folder}/.gitignore")
    return (*stack, (folder, matcher(lines))) if lines else stack


def _exclude_file(top: str) -> Stack:
    lines = _lines(f"{top}/.git/info/exclude")
    return ((top, matcher(lines)),) if lines else ()


def _lines(path: str) -> list[str]:
    content = read_path(path, _RULES_LIMIT_BYTES) or b""
    return content[:_RULES_LIMIT_BYTES].decode("utf-8", "replace").splitlines()


def _top_of(start: str, root: str) -> tuple[str, bool]:
    folder = start
    while True:
        if os.path.lexists(f"{folder}/.git"):
            return folder, True
        parent = os.path.dirname(folder)
        if parent == folder:
            return root, False
        folder = parent
