"""Listing and searching folders of this machine, inside a session's directories."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TypeVar

import anyio
import anyio.to_thread

from punie.adapters.local.files.ignore_rules import IgnoreRules
from punie.adapters.local.files.path_guard import resolve
from punie.adapters.local.files.ripgrep import find_ripgrep
from punie.adapters.local.files.stop_flag import StopFlag
from punie.adapters.local.files.text_search import Glob, Needle
from punie.adapters.local.files.tree_search import Sought, TreeSearch
from punie.adapters.local.files.tree_walk import TreeWalk, opened_start, shown
from punie.domain.errors import OutsideWorkspaceError, ToolFailedError, UnsupportedHereError
from punie.domain.values.paths import is_inside
from punie.ports.workspace import FileTree, Findings, Listing, PathGuard

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

    async def search_text(
        self, path: str, text: str, *, case_sensitive: bool, glob: str | None, limit: int
    ) -> Findings:
        """See the port. `ToolFailedError` for a missing path, a file that is not searched, and an unusable glob."""
        sought = Sought(text, case_sensitive, Needle(text, case_sensitive=case_sensitive), Glob(glob))
        start = await self._inside(path)

        def work(stop: StopFlag) -> Findings:
            search = TreeSearch(start, self._root_of(start), sought, limit, stop)
            return search.in_file() if os.path.isfile(start) else search.in_tree(self._found_ripgrep())

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
        walk = TreeWalk(IgnoreRules(start, self._root_of(start)), stop)
        found: list[str] = []
        with opened_start(start) as folder_fd:
            for entry in walk.below(start, folder_fd, recursive=recursive):
                if entry.is_link and not self._leads_inside(entry.path):
                    continue
                if len(found) >= limit:
                    return Listing(tuple(found), complete=False)
                found.append(shown(entry.path + ("/" if entry.is_folder else "")))
        return Listing(tuple(found), complete=walk.complete)

    def _roots(self) -> tuple[str, ...]:
        return tuple(found for root in self._given_roots if (found := resolve(root)) is not None)

    def _root_of(self, path: str) -> str:
        return max((root for root in self._roots() if is_inside(path, (root,))), key=len, default=path)

    def _found_ripgrep(self) -> str | None:
        if not self._looked_up and self._ripgrep is not None:
            self._ripgrep = find_ripgrep(self._ripgrep, self._roots())
        self._looked_up = True
        return self._ripgrep

    def _leads_inside(self, link: str) -> bool:
        target = resolve(link)
        return target is not None and is_inside(target, self._roots())
