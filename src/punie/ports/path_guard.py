"""Where a path really leads."""

from __future__ import annotations

from abc import abstractmethod
from typing import Protocol, runtime_checkable

from punie.domain.paths import Location


@runtime_checkable
class PathGuard(Protocol):
    """Knows the session's directories and follows links; lives as long as the session."""

    @abstractmethod
    async def locate(self, path: str) -> Location:
        """The absolute path with every link followed (of the deepest part that exists), and where it lies.

        A relative path is taken from the session's working directory. Never raises: what cannot be resolved lies
        outside.
        """
        ...
