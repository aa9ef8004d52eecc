"""Where a path lies: inside the session's roots or not, and whether it names a secret.

Pure comparisons of path components. Following links is I/O and happens in the adapter that hands paths in.
"""

from __future__ import annotations

from pathlib import PurePath

from attrs import frozen

from shellsight.secret_names import PLAIN, parts_of


@frozen
class Location:
    """One path of a call after links were followed: absolute, and what the policy needs to know of it."""

    path: str
    inside: bool
    secret: bool = False


def is_inside(path: str, roots: tuple[str, ...]) -> bool:
    """Whether an absolute, normalised path is one of `roots` or below one, compared component by component."""
    if not all(one.startswith("/") and PLAIN.match(one) for one in (path, *roots)):
        target = PurePath(path)
        return ".." not in target.parts and any(target.is_relative_to(PurePath(root)) for root in roots)
    parts = parts_of(path)
    return ".." not in parts and any(parts[: len(base)] == base for base in map(parts_of, roots))


def shown_path(path: str, cwd: str) -> str:
    """The path as a person in that directory would write it: relative below it, absolute elsewhere."""
    pure = PurePath(path)
    return str(pure.relative_to(cwd)) if pure.is_relative_to(cwd) else path
