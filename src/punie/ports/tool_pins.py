"""Which definition of a stranger's tool was approved."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Protocol, TypeAlias, runtime_checkable

from punie.domain.grants import ToolPin

PinName: TypeAlias = tuple[str, str, str]
"""Source, server and tool."""


@runtime_checkable
class ToolPins(Protocol):
    """Keeps the definitions approved last; lives as long as the process, shared by its sessions. It never raises."""

    @abstractmethod
    async def pinned(self, directory: str) -> Mapping[PinName, str] | None:
        """The digests approved in that directory; None where nobody can tell: then no definition counts as approved."""
        ...

    @abstractmethod
    async def pin(self, pin: ToolPin) -> bool:
        """Keep it in place of an earlier one, for good when this returns; False where it could not be kept."""
        ...
