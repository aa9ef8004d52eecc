"""What differs: last commit, index, working tree."""

# ruff: noqa: PTH116 - paths as git sees them: bytes, undecodable names, folder descriptors

from __future__ import annotations

import os
import stat
from collections.abc import Iterator

from dulwich.index import ConflictedIndexEntry, Index, IndexEntry, cleanup_mode
from dulwich.objects import S_ISGITLINK, Blob

from punie.adapters.git.checkout import Checkout, entry_of
from punie.adapters.git.conversion import Conversion
from punie.adapters.git.ignoring import UntrackedFiles
from punie.domain.errors import ToolFailedError
from punie.ports.workspace import RepositoryStatus


def read_status(checkout: Checkout) -> RepositoryStatus:
    """The whole status, of files inside the roots only."""
    index = checkout.index()
    untracked = UntrackedFiles(checkout, frozenset(index.paths()))
    return RepositoryStatus(
        branch=checkout.branch(),
        staged=_shown(staged_paths(checkout, index)),
        changed=_shown(changed_paths(checkout, index)),
        untracked=_shown(untracked.shown()),
    )


def staged_paths(checkout: Checkout, index: Index) -> Iterator[bytes]:
    """Paths whose index entry differs from the last commit."""
    entries = checkout.head_entries()
    for path, (mode, sha) in entries.items():
        entry = entry_of(index, path)
        same = entry is not None and (entry.sha, cleanup_mode(entry.mode)) == (sha, mode)
        conflict = entry is None and path in index
        if not same and not conflict and checkout.sees(path):
            yield path
    for path, entry in index.items():
        if path not in entries and isinstance(entry, IndexEntry) and checkout.sees(path):
            yield path


def changed_paths(checkout: Checkout, index: Index) -> Iterator[bytes]:
    """Paths whose file in the working tree differs from the index; conflicts are among them."""
    require_full_index(index)
    index_time_ns = _time_ns(index.path)
    conversion = Conversion(checkout)
    for path, entry in index.items():
        if not checkout.sees(path):
            continue
        if isinstance(entry, ConflictedIndexEntry) or _has_changed(checkout, conversion, path, entry, index_time_ns):
            yield path


def require_full_index(index: Index) -> None:
    """Raise `ToolFailedError` for a sparse index, whose folders stand for files that are not there."""
    if index.is_sparse():
        raise ToolFailedError("This checkout is sparse, which Punie's git tools do not know. Use git with run_command.")


def _has_changed(
    checkout: Checkout, conversion: Conversion, path: bytes, entry: IndexEntry, index_time_ns: int
) -> bool:
    if entry.skip_worktree or S_ISGITLINK(entry.mode):
        return False  # a submodule is a repository of its own
    known = checkout.stat(path)
    if known is None or not (stat.S_ISREG(known.st_mode) or stat.S_ISLNK(known.st_mode)):
        return True
    if not conversion.same_mode(known.st_mode, entry.mode):
        return True
    if _untouched(known, entry, index_time_ns):
        return False
    data = checkout.read(path)
    return data is None or not _is_blob(checkout, conversion.clean(path, data, entry), entry)


def _untouched(known: os.stat_result, entry: IndexEntry, index_time_ns: int) -> bool:
    """Whether size and times say that nothing was written since; a file as young as the index may lie (racy git)."""
    times = (known.st_mtime_ns, known.st_ctime_ns)
    return (
        known.st_size == entry.size
        and times == (_ns(entry.mtime), _ns(entry.ctime))
        and known.st_mtime_ns < index_time_ns
    )


def _is_blob(checkout: Checkout, data: bytes, entry: IndexEntry) -> bool:
    return Blob.from_string(data).get_id(checkout.object_format) == entry.sha


def _ns(time: float | tuple[int, int]) -> int:
    return time[0] * 1_000_000_000 + time[1] if isinstance(time, tuple) else int(time * 1_000_000_000)


def _time_ns(path: str | bytes) -> int:
    try:
        return os.stat(path).st_mtime_ns
    except OSError:
        return 0


def _shown(paths: Iterator[bytes]) -> tuple[str, ...]:
    return tuple(sorted(path.decode("utf-8", "replace") for path in paths))
