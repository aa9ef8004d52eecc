"""Listing and searching folders of this machine, inside a session's directories."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import TypeVar

import anyio
import anyio.to_thread

from punie.adapters.local.folders import LIST_FLAGS, open_file, opened_folder
from punie.adapters.local.ignore_rules import IgnoreRules
from punie.adapters.local.path_guard import resolve
from punie.adapters.local.ripgrep import RipgrepUnusableError, candidates, find_ripgrep
from punie.adapters.local.stop_flag import StopFlag
from punie.adapters.local.text_search import Glob, Needle, read_searchable
from punie.adapters.local.tree_walk import Entry, TreeWalk
from punie.domain.errors import OutsideWorkspaceError, ToolFailedError, UnsupportedHereError
from punie.domain.paths import is_inside, is_secret
from punie.ports.file_tree import FileTree, Findings, FoundLine, Listing
from punie.ports.path_guard import PathGuard

TIME_LIMIT_S = 10.0
"""A listing or search that takes longer ends with what it has."""

_THREADS = 4
_T = TypeVar("_T")


class LocalFileTree(FileTree):
    """Looks through folders of this machine's disk; lives as long as the session.

    Links are never followed on the way down: a link that leads inside the roots is listed, its target is met under
    its own path; one that leads out is passed over. Lines longer than 1,000 characters are shown in part. Paths come
    in the order of their components. Supported on Linux and macOS.
    """

    def __init__(self, guard: PathGuard, roots: tuple[str, ...], *, ripgrep: str | None = "rg") -> None:
        """`ripgrep` is looked up on PATH at the first search and only speeds it up; None does without."""
        self._guard = guard
        self._given_roots = roots
        self._ripgrep = ripgrep
        self._looked_up = False
        self._threads = anyio.CapacityLimiter(_THREADS)

    async def list_files(self, path: str, *, recursive: bool, limit: int) -> Listing:
        """See the port. `ToolFailedError` where the path is missing or is no folder."""
        start = await self._inside(path)
        return await self._in_thread(lambda stop: self._list(start, limit, stop, recursive=recursive))

    async def search_text(self, path: str, text: str, *, case_sensitive: bool, glob: str | None, limit: int) -> Findings:
        """See the port. `ToolFailedError` where the path is missing, or a file that is not searched, or on a bad glob."""
        needle = Needle(text, case_sensitive=case_sensitive)
        start = await self._inside(path)

        def work(stop: StopFlag) -> Findings:
            search = _Search(self, start, needle, Glob(glob), limit, stop)
            return search.in_file() if os.path.isfile(start) else search.in_tree(text, case_sensitive=case_sensitive)

        return await self._in_thread(work)

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
            stop.cancel()  # a thread that was abandoned ends at its next step, and the program it waits for at once

    def _list(self, start: str, limit: int, stop: StopFlag, *, recursive: bool) -> Listing:
        walk = TreeWalk(IgnoreRules(start, self.root_of(start)), stop)
        found: list[str] = []
        with _opened(start) as folder_fd:
            for entry in walk.below(start, folder_fd, recursive=recursive):
                if entry.is_link and not self._leads_inside(entry.path):
                    continue
                if len(found) >= limit:
                    return Listing(tuple(found), complete=False)
                found.append(_shown(entry.path + ("/" if entry.is_folder else "")))
        return Listing(tuple(found), complete=walk.complete)

    @property
    def roots(self) -> tuple[str, ...]:
        """The session's directories with every link followed."""
        return tuple(found for root in self._given_roots if (found := resolve(root)) is not None)

    def root_of(self, path: str) -> str:
        """The innermost root that holds the path."""
        return max((root for root in self.roots if is_inside(path, (root,))), key=len, default=path)

    def ripgrep(self) -> str | None:
        """The program to use, looked up once."""
        if not self._looked_up and self._ripgrep is not None:
            self._ripgrep = find_ripgrep(self._ripgrep, self.roots)
        self._looked_up = True
        return self._ripgrep

    def _leads_inside(self, link: str) -> bool:
        target = resolve(link)
        return target is not None and is_inside(target, self.roots)


class _Search:
    """One search, in a thread."""

    def __init__(  # noqa: PLR0917 - the words of one call
        self, tree: LocalFileTree, start: str, needle: Needle, glob: Glob, limit: int, stop: StopFlag
    ) -> None:
        self._tree = tree
        self._start = start
        self._needle = needle
        self._glob = glob
        self._limit = limit
        self._stop = stop
        self._found: list[FoundLine] = []
        self._read = 0

    def in_file(self) -> Findings:
        """Search the one file that was named, ignored by git or not."""
        if is_secret(self._start):
            raise ToolFailedError(f"{self._start} may hold secrets, so it is not searched. read_file asks for leave.")
        folder, name = os.path.split(self._start)
        with opened_folder(folder) as folder_fd:
            data = read_searchable(folder_fd, name)
        if data is None:
            raise ToolFailedError(f"{self._start} is binary, too large, or cannot be read. Use run_command to look at it.")
        complete = self._take(self._start, data)
        return Findings(tuple(self._found), 1, complete)

    def in_tree(self, text: str, *, case_sensitive: bool) -> Findings:
        """Search below the folder, with ripgrep's help where it is there."""
        rules = IgnoreRules(self._start, self._tree.root_of(self._start))
        program = self._tree.ripgrep()
        if program is not None:
            with _opened(self._start):
                pass  # what cannot be opened is said in the same words
            try:
                return self._in_candidates(program, text, rules, case_sensitive=case_sensitive)
            except RipgrepUnusableError:
                self._found.clear()
        return self._in_walk(rules)

    def _in_walk(self, rules: IgnoreRules) -> Findings:
        walk = TreeWalk(rules, self._stop)
        with _opened(self._start) as folder_fd:
            for entry in walk.below(self._start, folder_fd, recursive=True):
                if entry.is_file and self._wants(entry.path) and not self._search_entry(entry):
                    return Findings(tuple(self._found), self._read, complete=False)
        return Findings(tuple(self._found), self._read, walk.complete)

    def _in_candidates(self, program: str, text: str, rules: IgnoreRules, *, case_sensitive: bool) -> Findings:
        paths, searched, complete = candidates(
            program, text, self._start, rules, self._stop, case_sensitive=case_sensitive
        )
        for path in paths:
            if self._stop.raised:
                complete = False
                break
            if not self._wants(path) or rules.ignores_below(path):
                continue
            folder, name = os.path.split(path)
            try:
                with opened_folder(folder) as folder_fd:
                    goes_on = self._search_entry(Entry(folder, name, folder_fd))
            except OSError:  # gone, or replaced by a link
                continue
            if not goes_on:
                return Findings(tuple(self._found), searched or self._read, complete=False)
        return Findings(tuple(self._found), searched or self._read, complete)

    def _wants(self, path: str) -> bool:
        return self._glob.takes(path[len(self._start.rstrip("/")) + 1 :]) and not is_secret(path)

    def _search_entry(self, entry: Entry) -> bool:
        """Search one file; False where the limit of lines was passed."""
        data = read_searchable(entry.folder_fd, entry.name)
        if data is None:
            return True
        self._read += 1
        return self._take(entry.path, data)

    def _take(self, path: str, data: bytes) -> bool:
        for line in self._needle.lines_of(_shown(path), data):
            if len(self._found) >= self._limit:
                return False
            self._found.append(line)
        return True


class _opened:  # noqa: N801 - reads as a verb where it is used
    """The start of a listing or search as a descriptor that can be listed, with failures in words."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._descriptor = -1

    def __enter__(self) -> int:
        folder, name = os.path.split(self._path)
        try:
            with opened_folder(folder) as parent:
                self._descriptor = os.open(name or ".", LIST_FLAGS, dir_fd=parent)
        except FileNotFoundError:
            raise ToolFailedError(f"{self._path} does not exist. List a folder above it to see what is there.") from None
        except NotADirectoryError:
            raise ToolFailedError(f"{self._path} is not a folder. read_file reads a file.") from None
        except OSError as error:
            raise ToolFailedError(f"{self._path} cannot be listed: {error.strerror or error}.") from None
        return self._descriptor

    def __exit__(self, *_: object) -> None:
        os.close(self._descriptor)


def _shown(path: str) -> str:
    """The path as text that can be sent: bytes of a name that are no UTF-8 show as U+FFFD."""
    return os.fsencode(path).decode("utf-8", "replace")
