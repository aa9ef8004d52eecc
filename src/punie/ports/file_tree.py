"""Looking through folders, which ACP has no method for."""

from __future__ import annotations

from abc import abstractmethod
from typing import Protocol, runtime_checkable

from attrs import frozen


@frozen
class FoundLine:
    """One line that holds the text: absolute path, line number from 1, and the line without its end."""

    path: str
    line_1based: int
    text: str


@frozen
class Listing:
    """Absolute paths in order (folders end with a slash); `complete` is False where a bound cut it short."""

    paths: tuple[str, ...]
    complete: bool = True


@frozen
class Findings:
    """Matching lines in path order; `complete` is False where a bound cut the search short."""

    lines: tuple[FoundLine, ...]
    files_read: int
    complete: bool = True


@runtime_checkable
class FileTree(Protocol):
    """Lists and searches below a folder inside the session's roots; lives as long as the session.

    What git ignores is passed over, and so are `.git` itself, links that lead out of the roots, and, in a search,
    binary files and files that usually hold secrets.
    """

    @abstractmethod
    async def list_files(self, path: str, *, recursive: bool, limit: int) -> Listing:
        """The entries of one folder, or of the whole tree below it, at most `limit`. Raises `ToldToModel`."""
        ...

    @abstractmethod
    async def search_text(
        self, path: str, text: str, *, case_sensitive: bool, glob: str | None, limit: int
    ) -> Findings:
        """The lines below `path` (a folder or a file) that contain `text` literally. Raises `ToldToModel`."""
        ...
