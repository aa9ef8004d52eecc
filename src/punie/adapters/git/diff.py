"""Unified diffs as git prints them, without its external programs."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator
from io import StringIO
from itertools import takewhile

from attrs import frozen
from dulwich.index import Index, IndexEntry, cleanup_mode
from dulwich.objects import Blob, ObjectID

from punie.adapters.git.checkout import Checkout, Conversion, entry_of
from punie.adapters.git.status import changed_paths, staged_paths
from shellsight.secret_names import is_secret

FILE_LIMIT_BYTES = 1_000_000
TEXT_LIMIT_CHARS = 400_000
LINE_LIMIT = 5_000
"""Lines compared with each other; difflib's time grows with their square. A longer block is shown as replaced."""


@frozen
class Side:
    """One side of a diff; `mode` is None where the file is missing."""

    mode: int | None = None
    data: bytes = b""
    id: bytes = b"0" * 40


def read_diff(checkout: Checkout, path: str | None, *, staged: bool) -> str:
    """The whole diff, cut after the file with which it grows beyond `TEXT_LIMIT_CHARS`."""
    index = checkout.index()
    below = b"" if path is None else checkout.below_top(path)
    changed = staged_paths(checkout, index) if staged else changed_paths(checkout, index)
    wanted = sorted(name for name in changed if not below or name == below or name.startswith(below + b"/"))
    parts: list[str] = []
    total = 0
    for number, (name, old, new) in enumerate(_sides(checkout, index, wanted, staged=staged)):
        part = _file_diff(name.decode("utf-8", "replace"), old, new)
        total += len(part)
        if parts and total > TEXT_LIMIT_CHARS:
            parts.append(f"[... {len(wanted) - number} more files left out; ask for one of them by its path ...]\n")
            break
        parts.append(part)
    return "".join(parts)


def _sides(checkout: Checkout, index: Index, paths: list[bytes], *, staged: bool) -> Iterator[tuple[bytes, Side, Side]]:
    head = checkout.head_entries() if staged else {}
    conversion = Conversion(checkout)
    for path in paths:
        indexed = entry_of(index, path)
        middle = Side() if indexed is None else _stored(checkout, cleanup_mode(indexed.mode), indexed.sha)
        if staged:
            known = head.get(path)
            yield path, Side() if known is None else _stored(checkout, *known), middle
        else:
            yield path, middle, _on_disk(checkout, conversion, path, indexed)


def _stored(checkout: Checkout, mode: int, sha: ObjectID) -> Side:
    return Side(mode, checkout.stored(sha), sha)


def _on_disk(checkout: Checkout, conversion: Conversion, path: bytes, entry: IndexEntry | None) -> Side:
    known = checkout.stat(path)
    data = None if known is None else checkout.read(path)
    if known is None or data is None:
        return Side()
    cleaned = conversion.clean(path, data, entry)
    mode = conversion.mode(known.st_mode, None if entry is None else entry.mode)
    return Side(mode, cleaned, Blob.from_string(cleaned).get_id(checkout.object_format))


def _file_diff(name: str, old: Side, new: Side) -> str:
    head = [f"diff --git a/{name} b/{name}"]
    if old.mode is None and new.mode is not None:
        head.append(f"new file mode {new.mode:o}")
    elif new.mode is None and old.mode is not None:
        head.append(f"deleted file mode {old.mode:o}")
    elif old.mode != new.mode:
        head += [f"old mode {old.mode:o}", f"new mode {new.mode:o}"]
    if old.data != new.data or (old.mode is None) != (new.mode is None):
        same = f" {new.mode:o}" if old.mode == new.mode and new.mode is not None else ""
        head.append(f"index {old.id[:7].decode()}..{new.id[:7].decode()}{same}")
    return "\n".join(head) + "\n" + _body(name, old, new)


def _body(name: str, old: Side, new: Side) -> str:
    if old.data == new.data:
        return ""
    if is_secret(f"/{name}"):
        return "(the file may hold secrets, so its contents are not shown; read_file asks for permission)\n"
    if b"\0" in old.data or b"\0" in new.data:
        return f"Binary files a/{name} and b/{name} differ\n"
    if len(old.data) > FILE_LIMIT_BYTES or len(new.data) > FILE_LIMIT_BYTES:
        return f"(too large to compare: {len(old.data)} and {len(new.data)} bytes)\n"
    before = "/dev/null" if old.mode is None else f"a/{name}"
    after = "/dev/null" if new.mode is None else f"b/{name}"
    return "".join(_hunks(_lines(old.data), _lines(new.data), before, after))


def _lines(data: bytes) -> list[str]:
    return StringIO(data.decode("utf-8", "replace"), newline="\n").readlines()


def _hunks(old: list[str], new: list[str], before: str, after: str) -> Iterator[str]:
    start, end = _common_ends(old, new)
    if max(len(old), len(new)) - start - end > LINE_LIMIT:
        yield f"--- {before}\n+++ {after}\n"
        yield f"@@ -{start + 1},{len(old) - start - end} +{start + 1},{len(new) - start - end} @@\n"
        yield from map(_ended, ["-" + line for line in old[start : len(old) - end]])
        yield from map(_ended, ["+" + line for line in new[start : len(new) - end]])
        return
    # Only the part that differs is compared, with three lines of context; then the line numbers are corrected.
    first = max(0, start - 3)
    last = max(0, end - 3)
    middle = difflib.unified_diff(old[first : len(old) - last], new[first : len(new) - last], before, after, n=3)
    for line in middle:
        yield _ended(_shifted(line, first) if line.startswith("@@") else line)


def _common_ends(old: list[str], new: list[str]) -> tuple[int, int]:
    start = _same(old, new)
    return start, min(_same(reversed(old), reversed(new)), min(len(old), len(new)) - start)


def _same(lines: Iterable[str], others: Iterable[str]) -> int:
    """The number of lines that both begin with."""
    return sum(1 for _ in takewhile(lambda both: both[0] == both[1], zip(lines, others, strict=False)))


def _shifted(header: str, by: int) -> str:
    return re.sub(r"(?<=[-+])\d+", lambda number: str(int(number[0]) + by), header)


def _ended(line: str) -> str:
    return line if line.endswith("\n") else line + "\n\\ No newline at end of file\n"
