"""Searching a file or a tree for a text."""

from __future__ import annotations

import os

from attrs import define, field, frozen

from punie.adapters.local.files.folders import opened_folder
from punie.adapters.local.files.ignore_rules import IgnoreRules
from punie.adapters.local.files.ripgrep import RipgrepUnusableError, candidates
from punie.adapters.local.files.stop_flag import StopFlag
from punie.adapters.local.files.text_search import Glob, Needle, read_searchable
from punie.adapters.local.files.tree_walk import Entry, TreeWalk, opened_start, shown
from punie.domain.errors import ToolFailedError
from punie.domain.values.paths import is_inside
from punie.ports.workspace import Findings, FoundLine
from shellsight.secret_names import is_secret


@frozen
class Sought:
    """What is looked for, in which files."""

    text: str
    case_sensitive: bool
    needle: Needle
    glob: Glob


@define
class TreeSearch:
    """One search, run in a thread; lives as long as the call."""

    start: str
    root: str
    sought: Sought
    limit: int
    stop: StopFlag
    _found: list[FoundLine] = field(factory=list)
    _read: int = 0

    def in_file(self) -> Findings:
        """Search the one file that was named, ignored by git or not."""
        if is_secret(self.start):
            raise ToolFailedError(f"{self.start} may hold secrets, so it is not searched. read_file asks for leave.")
        folder, name = os.path.split(self.start)
        with opened_folder(folder) as folder_fd:
            data = read_searchable(folder_fd, name)
        if data is None:
            raise ToolFailedError(
                f"{self.start} is binary, too large or closed to us, so it was not searched. Try run_command."
            )
        complete = self._take(self.start, data)
        return Findings(tuple(self._found), 1, complete)

    def in_tree(self, ripgrep: str | None) -> Findings:
        """Search below the folder, with ripgrep's help where its path is given."""
        rules = IgnoreRules(self.start, self.root)
        with opened_start(self.start) as folder_fd:
            if ripgrep is not None:
                try:
                    return self._in_candidates(ripgrep, rules)
                except RipgrepUnusableError:
                    self._found.clear()
            return self._in_walk(rules, folder_fd)

    def _in_walk(self, rules: IgnoreRules, folder_fd: int) -> Findings:
        walk = TreeWalk(rules, self.stop)
        for entry in walk.below(self.start, folder_fd, recursive=True):
            if entry.is_file and self._wants(entry.path) and not self._search(entry):
                return Findings(tuple(self._found), self._read, complete=False)
        return Findings(tuple(self._found), self._read, walk.complete)

    def _in_candidates(self, ripgrep: str, rules: IgnoreRules) -> Findings:
        sought = self.sought
        picked = candidates(ripgrep, sought.text, self.start, rules, self.stop, case_sensitive=sought.case_sensitive)
        complete = picked.complete
        for path in picked.paths:
            if self.stop.raised:
                complete = False
            elif is_inside(path, (self.start,)) and self._wants(path) and not rules.ignores_below(path):
                complete = self._search_path(path) and complete
            if not complete:
                break
        return Findings(tuple(self._found), picked.searched or self._read, complete)

    def _search_path(self, path: str) -> bool:
        folder, name = os.path.split(path)
        try:
            with opened_folder(folder) as folder_fd:
                return self._search(Entry(folder, name, folder_fd))
        except OSError:  # gone, or replaced by a link
            return True

    def _wants(self, path: str) -> bool:
        return self.sought.glob.takes(path[len(self.start.rstrip("/")) + 1 :]) and not is_secret(path)

    def _search(self, entry: Entry) -> bool:
        """Search one file; False where the limit of lines was passed."""
        data = read_searchable(entry.folder_fd, entry.name)
        if data is None:
            return True
        self._read += 1
        return self._take(entry.path, data)

    def _take(self, path: str, data: bytes) -> bool:
        for line in self.sought.needle.lines_of(shown(path), data):
            if len(self._found) >= self.limit:
                return False
            self._found.append(line)
        return True
