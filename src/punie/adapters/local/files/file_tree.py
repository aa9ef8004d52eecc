"""Listing and searching folders of this machine, inside a session's directories."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator
from functools import cached_property
from typing import TypeVar

import anyio
import anyio.to_thread
from attrs import define, field

from punie.adapters.local.files.outlines import SOURCE_LIMIT_BYTES, definitions, has_grammar
from punie.adapters.local.files.path_guard import resolve
from punie.adapters.local.files.text_search import (
    Glob,
    Look,
    Needle,
    RipgrepUnusableError,
    candidates,
    find_ripgrep,
    read_searchable,
    unboxed,
)
from punie.adapters.local.files.tree_walk import Entry, StopFlag, TreeWalk, opened_start, shown
from punie.domain.errors import OutsideWorkspaceError, ToolFailedError, UnsupportedHereError
from punie.domain.values.paths import is_inside
from punie.mechanics.files import opened_folder
from punie.mechanics.ignore_rules import IgnoreRules
from punie.ports.workspace import Definition, FileTree, Findings, FoundLine, Listing, Outlines, PathGuard, Sought
from shellsight.secret_names import is_secret


@define
class TreeSearch:
    """One search, done in a thread; lives as long as the call."""

    start: str
    root: str
    sought: Sought
    needle: Needle
    glob: Glob
    limit: int
    stop: StopFlag
    hidden: Collection[str] = ()
    look: Look = unboxed
    _found: list[FoundLine] = field(factory=list)
    _read: int = 0

    def in_file(self) -> Findings:
        """Search the one file that is the start, ignored by git or not."""
        if is_secret(self.start):
            raise ToolFailedError(f"{self.start} may hold secrets, so it is not searched; read_file asks first.")
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
        """Search below the folder, with ripgrep where its path is given."""
        rules = IgnoreRules(self.start, self.root, self.hidden)
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
        picked = candidates(ripgrep, self.sought, self.start, rules, self.stop, self.look)
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
        return self.glob.takes(path[len(self.start.rstrip("/")) + 1 :]) and not is_secret(path)

    def _search(self, entry: Entry) -> bool:
        """Search one file; False where there were more lines than the limit."""
        data = read_searchable(entry.folder_fd, entry.name)
        if data is None:
            return True
        self._read += 1
        return self._take(entry.path, data)

    def _take(self, path: str, data: bytes) -> bool:
        for line in self.needle.lines_of(shown(path), data, self.stop):
            if len(self._found) >= self.limit:
                return False
            self._found.append(line)
            if self.sought.files_only:
                break
        return not self.stop.raised


TIME_LIMIT_S = 10.0
"""A listing or search that takes longer ends with the entries found so far."""

_THREADS = 4
_T = TypeVar("_T")


class LocalFileTree(FileTree):
    """Folders of this machine's disk; lives as long as the session. Supported on Linux and macOS.

    Links are never followed on the way down: a link that leads inside the roots is listed and not entered, one that
    leads out is passed over. Lines longer than 1,000 characters are shown in part. Paths are ordered by components.
    """

    def __init__(
        self,
        guard: PathGuard,
        roots: tuple[str, ...],
        *,
        hidden: Collection[str] = (),
        ripgrep: str | None = "rg",
        look: Look = unboxed,
    ) -> None:
        """`ripgrep` is a program that is looked up on PATH at the first search, to speed it up; None does without.

        `hidden` are absolute paths that are neither listed nor searched. `look` is a block around that program's run.
        """
        self._guard = guard
        self._hidden = frozenset(hidden)
        self._given_roots = roots
        self._ripgrep = ripgrep
        self._look = look
        self._threads = anyio.CapacityLimiter(_THREADS)

    async def list_files(self, path: str, *, recursive: bool, limit: int) -> Listing:
        start = await self._inside(path)
        return await self._in_thread(lambda stop: self._list(start, limit, stop, recursive=recursive))

    async def search_text(self, path: str, sought: Sought, *, limit: int) -> Findings:
        needle, glob = Needle(sought), Glob(sought.glob)
        start = await self._inside(path)

        def work(stop: StopFlag) -> Findings:
            search = TreeSearch(
                start, self._root_of(start), sought, needle, glob, limit, stop, self._hidden, self._look
            )
            return search.in_file() if os.path.isfile(start) else search.in_tree(self._found_ripgrep)

        return await self._in_thread(work)

    async def outline(self, path: str, *, limit: int) -> Outlines:
        start = await self._inside(path)
        if is_secret(start):
            raise ToolFailedError(f"{start} may hold secrets, so it is not outlined; read_file asks first.")
        return await self._in_thread(lambda stop: self._outline(start, limit, stop))

    async def _inside(self, path: str) -> str:
        if os.name != "posix":
            raise UnsupportedHereError(
                "Punie does not look through folders itself on this operating system yet. Use a tool of the IDE, or "
                "run Punie on Linux or macOS."
            )
        where = await self._guard.locate(path)
        if not where.inside:
            raise OutsideWorkspaceError(where.path)
        if ".git" in where.path.split("/"):
            raise ToolFailedError(f"{where.path} belongs to git itself. Use git_status, git_diff or git_log instead.")
        return where.path

    async def _in_thread(self, work: Callable[[StopFlag], _T]) -> _T:
        stop = StopFlag(TIME_LIMIT_S)
        try:
            return await anyio.to_thread.run_sync(work, stop, abandon_on_cancel=True, limiter=self._threads)
        finally:
            stop.cancel()  # ends an abandoned thread at its next step, and the program that it waits for at once

    def _list(self, start: str, limit: int, stop: StopFlag, *, recursive: bool) -> Listing:
        walk = TreeWalk(IgnoreRules(start, self._root_of(start), self._hidden), stop)
        found: list[str] = []
        with opened_start(start) as folder_fd:
            for entry in walk.below(start, folder_fd, recursive=recursive):
                if entry.is_link and not self._leads_inside(entry.path):
                    continue
                if len(found) >= limit:
                    return Listing(tuple(found), complete=False)
                found.append(shown(entry.path + ("/" if entry.is_folder else "")))
        return Listing(tuple(found), complete=walk.complete)

    def _outline(self, start: str, limit: int, stop: StopFlag) -> Outlines:
        if not os.path.isfile(start):
            walk = TreeWalk(IgnoreRules(start, self._root_of(start), self._hidden), stop)
            with opened_start(start) as folder_fd:
                files = tuple(_outermost(walk, walk.below(start, folder_fd, recursive=True), limit))
            return Outlines(files, walk.complete)
        folder, name = os.path.split(start)
        with opened_folder(folder) as folder_fd:
            source = read_searchable(folder_fd, name, SOURCE_LIMIT_BYTES)
        if source is None:
            raise ToolFailedError(f"{start} is binary, too large or closed to us. Try search_text or run_command.")
        found = definitions(start, source, stop)
        return Outlines(((shown(start), found[:limit]),), complete=len(found) <= limit)

    def _roots(self) -> tuple[str, ...]:
        return tuple(found for root in self._given_roots if (found := resolve(root)) is not None)

    def _root_of(self, path: str) -> str:
        return max((root for root in self._roots() if is_inside(path, (root,))), key=len, default=path)

    @cached_property
    def _found_ripgrep(self) -> str | None:
        return None if self._ripgrep is None else find_ripgrep(self._ripgrep, self._roots())

    def _leads_inside(self, link: str) -> bool:
        target = resolve(link)
        return target is not None and is_inside(target, self._roots())


def _outermost(walk: TreeWalk, entries: Iterable[Entry], limit: int) -> Iterator[tuple[str, tuple[Definition, ...]]]:
    """The outermost definitions of source files, at most `limit`; the walk is not complete where some are left out."""
    for entry in entries:
        if not entry.is_file or not has_grammar(entry.name) or is_secret(entry.path):
            continue
        source = read_searchable(entry.folder_fd, entry.name, SOURCE_LIMIT_BYTES)
        if source is None:
            continue
        try:
            found = tuple(each for each in definitions(entry.path, source, walk.stop) if not each.depth)
        except ToolFailedError:  # it takes too long
            walk.complete = False
            continue
        limit -= len(found)
        if limit < 0:
            walk.complete = False
            return
        if found:
            yield shown(entry.path), found
