"""The git repository around a session, read without running git."""

from __future__ import annotations

from abc import abstractmethod
from typing import Protocol, runtime_checkable

from attrs import frozen


@frozen
class RepositoryStatus:
    """Branch (None: detached or unborn) and changed paths, relative to the repository's top, each list sorted."""

    branch: str | None
    staged: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    untracked: tuple[str, ...] = ()


@frozen
class Commit:
    """One commit: full hash, author, ISO 8601 time with offset, whole message."""

    id: str
    author: str
    time: str
    message: str


@runtime_checkable
class Repository(Protocol):
    """Reads, and on leave writes, the repository that holds the session's directory; lives as long as the session.

    It goes through a library that runs no program, no hook, no filter, no pager and no configured command: a strange
    repository's configuration must not run code. Every method raises `ToldToModel` where there is no repository.
    """

    @abstractmethod
    async def status(self) -> RepositoryStatus:
        """What differs from the last commit."""
        ...

    @abstractmethod
    async def diff(self, path: str | None, *, staged: bool) -> str:
        """A unified diff of the working tree against the index, or of the index against the last commit."""
        ...

    @abstractmethod
    async def log(self, limit: int) -> tuple[Commit, ...]:
        """The newest commits first, at most `limit`."""
        ...

    @abstractmethod
    async def add_and_commit(self, message: str, paths: tuple[str, ...]) -> Commit:
        """Stage `paths` (all changed and untracked ones where empty) and commit them."""
        ...
